package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// show prints a history as a table, in the order of sending. Times are in milliseconds since the first request. The table shows
// the origin's id as `root`, and other ids without their origin.
func show(history []Entry) {
	slices.SortFunc(history, func(a, b Entry) int { return cmp.Compare(a.Call, b.Call) })
	last := slices.MaxFunc(history, func(a, b Entry) int {
		return cmp.Compare(answeredAt(a), answeredAt(b))
	})
	zero := history[0].From
	fmt.Printf("\nNo order explains the last answer (marked) of history %d, origin %s:\n\n", last.History, origin(last.ids()[0]))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tclient\tsent\tanswered\tclock\trequest\tanswer")
	for _, entry := range history {
		mark, answered := "", fmt.Sprint(entry.Return)
		if entry.Call == last.Call {
			mark = "*"
		}
		if entry.Answer == nil {
			answered = "open"
		}
		clock := fmt.Sprint(entry.From - zero)
		if entry.Until != entry.From {
			clock += fmt.Sprint("–", entry.Until-zero)
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", mark, entry.Client, entry.Call, answered, clock,
			words(entry.Kind, &entry.Data, zero), told(entry.Answer, zero))
	}
	out.Flush()
}

func answeredAt(entry Entry) int64 {
	if entry.Answer == nil {
		return 0
	}
	return entry.Return
}

func words(kind string, r *Request, zero int64) string {
	text := []string{kind}
	add := func(condition bool, format string, values ...any) {
		if condition {
			text = append(text, fmt.Sprintf(format, values...))
		}
	}
	add(r.ID != "", "%s", short(r.ID))
	isLeased := strings.HasPrefix(kind, "task.") && r.ID != "" && kind != "task.get" && kind != "task.halt" && kind != "task.continue"
	add(isLeased, "v%d", r.Version)
	add(r.Awaited != "", "awaited %s", short(r.Awaited))
	add(r.Awaiter != "", "awaiter %s", short(r.Awaiter))
	add(r.State != "", "%s %s", r.State, r.Value.Data)
	add(r.TimeoutAt != 0, "until %d", r.TimeoutAt-zero)
	add(r.Tags["resonate:target"] != "", "target")
	add(r.Tags["resonate:timer"] != "", "timer")
	add(r.PID != "", "by %s", r.PID)
	add(r.TTL != 0, "for %d", r.TTL)
	for _, task := range r.Tasks {
		add(true, "%s v%d", short(task.ID), task.Version)
	}
	for _, action := range r.Actions {
		add(true, "on %s", short(action.Data.Awaited))
	}
	if r.Action != nil {
		add(true, "(%s)", words(r.Action.Kind, &r.Action.Data, zero))
	}
	return strings.Join(text, " ")
}

func told(answer *Answer, zero int64) string {
	if answer == nil {
		return "?"
	}
	text := []string{fmt.Sprint(answer.Status)}
	if t := answer.Task; t != nil {
		text = append(text, fmt.Sprintf("%s v%d", t.State, t.Version))
		if t.PID != "" {
			text = append(text, fmt.Sprintf("by %s for %d", t.PID, t.TTL))
		}
		if t.Resumes > 0 {
			text = append(text, fmt.Sprintf("resumes %d", t.Resumes))
		}
	}
	if p := answer.Promise; p != nil {
		text = append(text, fmt.Sprintf("%s %s created %d", p.State, p.Value.Data, p.CreatedAt-zero))
		if p.SettledAt != 0 {
			text = append(text, fmt.Sprintf("settled %d", p.SettledAt-zero))
		}
	}
	if inner := answer.inner(); inner != nil {
		text = append(text, "("+told(inner, zero)+")")
	}
	return strings.Join(text, " ")
}

func short(id string) string {
	if _, child, isChild := strings.Cut(id, ":"); isChild {
		return ":" + child
	}
	return "root"
}
