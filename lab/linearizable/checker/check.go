package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

type verdict = porcupine.CheckResult

const (
	illegal = porcupine.Illegal
	unknown = porcupine.Unknown
	// How long the check of one origin's history may take.
	patience = time.Minute
)

func check(p protocol, history []Entry) verdict {
	operations := make([]porcupine.Operation, len(history))
	for i := range history {
		entry := &history[i]
		operations[i] = porcupine.Operation{ClientId: entry.Client, Input: entry, Call: entry.Call, Return: entry.Return}
	}
	return porcupine.CheckOperationsTimeout(model(p), operations, patience)
}

// smallest reduces each failing history and returns the shortest result.
func smallest(p protocol, failing [][]Entry) []Entry {
	best := failing[0]
	for i, history := range failing {
		if cut := withoutIdle(p, shortestPrefix(p, history)); i == 0 || len(cut) < len(best) {
			best = cut
		}
	}
	return best
}

// shortestPrefix ends the history at the first answer that no order explains. Requests under way at that moment lose their
// answers: they may or may not have taken effect.
func shortestPrefix(p protocol, history []Entry) []Entry {
	sorted := slices.SortedFunc(slices.Values(history), func(a, b Entry) int { return cmp.Compare(a.Return, b.Return) })
	for i, last := range sorted {
		prefix := slices.Clone(sorted[:i+1])
		for _, later := range sorted[i+1:] {
			if later.Call < last.Return {
				later.Answer = nil
				prefix = append(prefix, later)
			}
		}
		if check(p, prefix) == illegal {
			return prefix
		}
	}
	return history
}

// withoutIdle removes reads and refused requests without which the history still fails.
func withoutIdle(p protocol, history []Entry) []Entry {
	for i := 0; i < len(history); {
		entry := history[i]
		isRead := []string{"promise.get", "task.get", "promise.register_listener"}
		if slices.Contains(isRead, entry.Kind) || entry.Answer != nil && entry.Answer.Status >= 400 {
			if rest := slices.Delete(slices.Clone(history), i, i+1); check(p, rest) == illegal {
				history = rest
				continue
			}
		}
		i++
	}
	return history
}
