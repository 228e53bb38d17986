package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// span holds the bounds of a time, both included, in milliseconds since the epoch.
type span struct{ from, until int64 }

func at(time int64) span { return span{time, time} }

// promise is a promise as the server stores it.
type promise struct {
	state        string
	param, value string
	tags         map[string]string
	timeoutAt    int64
	// The possible times; recorded answers narrow them down.
	created, settled span
	// The ids of the tasks to resume when the promise settles, sorted.
	awaiters []string
}

// task is a task as the server stores it.
type task struct {
	state   string
	version int
	pid     string
	ttl     int64
	// The earliest time at which the lease can end.
	due int64
	// The promises that have resumed the task since it was acquired or suspended, sorted.
	resumes []string
}

// state is a state that the server may be in. A sealed state never changes.
type state struct {
	promises map[string]*promise
	tasks    map[string]*task
	// The clock's lower bound.
	now int64
	// Equal states have equal keys.
	key string
}

func (s *state) clone() *state {
	copied := &state{promises: make(map[string]*promise, len(s.promises)), tasks: make(map[string]*task, len(s.tasks)), now: s.now}
	for id, p := range s.promises {
		other := *p
		other.awaiters = slices.Clone(p.awaiters)
		copied.promises[id] = &other
	}
	for id, t := range s.tasks {
		other := *t
		other.resumes = slices.Clone(t.resumes)
		copied.tasks[id] = &other
	}
	return copied
}

// seal sets the key of a state that will no longer change.
func (s *state) seal() *state {
	var text strings.Builder
	fmt.Fprintln(&text, s.now)
	for _, id := range slices.Sorted(maps.Keys(s.promises)) {
		fmt.Fprintln(&text, id, *s.promises[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		fmt.Fprintln(&text, id, *s.tasks[id])
	}
	s.key = text.String()
	return s
}

// isDue tells whether a pending promise has passed its deadline.
func (s *state) isDue(id string, now int64) bool {
	p := s.promises[id]
	return p != nil && p.state == "pending" && p.timeoutAt <= now
}

// settle settles a pending promise, ends its task and resumes the tasks that await it.
func (s *state) settle(id, verdict, value string, when span) {
	p := s.promises[id]
	p.state, p.value, p.settled = verdict, value, when
	if t := s.tasks[id]; t != nil {
		*t = task{state: "fulfilled", version: t.version}
		for _, other := range s.promises {
			other.awaiters = without(other.awaiters, id)
		}
	}
	for _, awaiter := range p.awaiters {
		s.tasks[awaiter].resume(id)
	}
	p.awaiters = nil
}

// timeOut settles a promise at its deadline.
func (s *state) timeOut(id string) {
	p := s.promises[id]
	s.settle(id, timedOut(p.tags), "", at(p.timeoutAt))
}

func (t *task) resume(by string) {
	if t.state == "suspended" {
		t.state = "pending"
	}
	t.resumes = with(t.resumes, by)
}

func (t *task) isHeld(version int) bool { return t.state == "acquired" && t.version == version }

func (t *task) lease(r *Request, now span) {
	*t = task{state: "acquired", version: t.version + 1, pid: r.PID, ttl: r.TTL, due: now.from + r.TTL}
}

// leave moves a task to another state and ends its lease.
func (t *task) leave(to string) {
	*t = task{state: to, version: t.version, resumes: t.resumes}
}

func timedOut(tags map[string]string) string {
	if tags["resonate:timer"] == "true" {
		return "resolved"
	}
	return "rejected_timedout"
}

func with(sorted []string, added string) []string {
	at, isThere := slices.BinarySearch(sorted, added)
	if isThere {
		return sorted
	}
	return slices.Insert(sorted, at, added)
}

func without(sorted []string, removed string) []string {
	at, isThere := slices.BinarySearch(sorted, removed)
	if !isThere {
		return sorted
	}
	return slices.Delete(sorted, at, at+1)
}
