package main

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"
)

// model gives porcupine all states that the server may be in after an entry. There are several, because a history shows neither
// the exact time of a request nor the time at which the server handled a deadline. A request first times out the promises that it
// names. Any other promise resumes its awaiters at some time after its deadline, and a lease ends at some time after it is due.
func model(p protocol) porcupine.Model {
	seed := maphash.MakeSeed()
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{(&state{}).seal()} },
		Step: func(before, input, _ any) []any {
			var after []any
			for _, next := range p.step(before.(*state), input.(*Entry)) {
				after = append(after, next)
			}
			return after
		},
		Equal: func(a, b any) bool { return a.(*state).key == b.(*state).key },
		Hash:  func(s any) uint64 { return maphash.String(seed, s.(*state).key) },
	}).ToModel()
}

func (p protocol) step(before *state, entry *Entry) []*state {
	var after []*state
	if entry.Answer == nil {
		after = append(after, before) // The request may not have reached the server.
	}
	for _, now := range instants(before, entry) {
		tick := now.from
		if p.isReal {
			tick = entry.Until
		}
		for _, s := range overdue(before, entry, now.from, tick) {
			answer := p.apply(s, entry.Kind, &entry.Data, now)
			if entry.Answer == nil || answer.matches(entry.Answer) {
				if p.isReal {
					s.now = 0
				}
				after = append(after, s.seal())
			}
		}
	}
	return after
}

// instants divides the interval of a request at each time that changes its outcome.
func instants(s *state, entry *Entry) []span {
	first := max(s.now, entry.From)
	times := []int64{first}
	add := func(time int64) {
		if time > first && time <= entry.Until {
			times = append(times, time)
		}
	}
	for _, p := range s.promises {
		if p.state == "pending" {
			add(p.timeoutAt)
		}
	}
	for _, t := range s.tasks {
		add(t.due)
	}
	if creation := entry.created(); creation != nil {
		add(creation.TimeoutAt)
	}
	for answer := entry.Answer; answer != nil; answer = answer.inner() {
		if shown := answer.Promise; shown != nil {
			for _, time := range []int64{shown.CreatedAt, shown.SettledAt} {
				add(time)
				add(time + 1)
			}
		}
	}
	if first > entry.Until {
		return nil
	}
	slices.Sort(times)
	times = slices.Compact(times)
	spans := make([]span, len(times))
	for i, time := range times {
		spans[i] = span{time, entry.Until}
		if i > 0 {
			spans[i-1].until = time - 1
		}
	}
	return spans
}

// overdue returns one copy of the state for each set of deadlines that the server may have handled by the time `tick`.
func overdue(before *state, entry *Entry, now, tick int64) []*state {
	named := entry.ids()
	s := before.clone()
	s.now = now
	ids := slices.Sorted(maps.Keys(s.promises))
	for _, id := range ids {
		if s.isDue(id, now) && (slices.Contains(named, id) || len(s.promises[id].awaiters) == 0) {
			s.timeOut(id)
		}
	}
	all := []*state{s}
	choose := func(choice func(*state)) {
		for _, each := range all {
			other := each.clone()
			choice(other)
			all = append(all, other)
		}
	}
	for _, id := range ids {
		// The handling of a deadline that concerns no named promise can be left for later, because no answer shows it yet.
		concerned := append(slices.Clone(s.promises[id].awaiters), id)
		isNamed := slices.ContainsFunc(concerned, func(id string) bool { return slices.Contains(named, id) })
		if s.isDue(id, tick) && isNamed {
			choose(func(s *state) { s.timeOut(id) })
		}
		if t := s.tasks[id]; t != nil && t.state == "acquired" && t.due <= tick && slices.Contains(named, id) {
			choose(func(s *state) {
				if t := s.tasks[id]; t.state == "acquired" {
					t.leave("pending")
				}
			})
		}
	}
	return all
}
