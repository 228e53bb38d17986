package main

import (
	"fmt"
	"strings"
	"testing"
)

// Histories are written as lines: client, sent–answered, time, request, answer. Ids begin with the origin `o`.
const (
	created  = `"promise.create","data":{"id":"%s","timeoutAt":%d,"tags":{"resonate:target":"t"}}`
	shownAs  = `"promise":{"id":"%s","state":"%s","timeoutAt":%d,"createdAt":%d,"settledAt":%d,"value":{"data":"%s"},"tags":{"resonate:target":"t"}}`
	acquired = `"task.acquire","data":{"id":"o","version":%d,"pid":"%s","ttl":%d}`
	taken    = `"task":{"id":"o","state":"acquired","version":%d,"pid":"%s","ttl":%d,"resumes":0}`
	far      = 1_000_000
)

// builder builds a history, one request after another unless spans are given.
type builder struct {
	lines []string
	order int
}

// add appends a request that is sent when all before have been answered; times are the server's clock.
func (b *builder) add(now int, request string, status int, data string) *builder {
	b.order += 2
	return b.during(b.order-1, b.order, now, now, request, status, data)
}

// during appends a request with the positions of its sending and its answer; status 0 stands for a lost request.
func (b *builder) during(call, answered, from, until int, request string, status int, data string) *builder {
	answer := ""
	if status != 0 {
		answer = fmt.Sprintf(`,"answer":{"status":%d,"data":{%s}}`, status, data)
	}
	line := fmt.Sprintf(`{"client":%d,"call":%d,"return":%d,"from":%d,"until":%d,"kind":%s%s}`, len(b.lines), call, answered, from, until, request, answer)
	b.lines = append(b.lines, line)
	b.order = max(b.order, answered)
	return b
}

func promiseOf(id, state string, timeoutAt, createdAt, settledAt int, value string) string {
	return fmt.Sprintf(shownAs, id, state, timeoutAt, createdAt, settledAt, value)
}

func createOf(id string, timeoutAt int) string { return fmt.Sprintf(created, id, timeoutAt) }
func getOf(id string) string                   { return fmt.Sprintf(`"promise.get","data":{"id":"%s"}`, id) }
func taskOf(id string) string                  { return fmt.Sprintf(`"task.get","data":{"id":"%s"}`, id) }

func settleOf(id, state, value string) string {
	return fmt.Sprintf(`"promise.settle","data":{"id":"%s","state":"%s","value":{"data":"%s"}}`, id, state, value)
}

func suspendOf(version int, awaited string) string {
	return fmt.Sprintf(`"task.suspend","data":{"id":"o","version":%d,"actions":[{"data":{"awaited":"%s","awaiter":"o"}}]}`, version, awaited)
}

func stateOf(state string, version, resumes int) string {
	return fmt.Sprintf(`"task":{"id":"o","state":"%s","version":%d,"resumes":%d}`, state, version, resumes)
}

// job begins a history with a task that p1 has acquired at version 1, and a child promise.
func job(ttl int) *builder {
	return new(builder).
		add(10, createOf("o", far), 200, promiseOf("o", "pending", far, 10, 0, "")).
		add(11, createOf("o:1", 50), 200, promiseOf("o:1", "pending", 50, 11, 0, "")).
		add(12, fmt.Sprintf(acquired, 0, "p1", ttl), 200, fmt.Sprintf(taken, 1, "p1", ttl)+","+promiseOf("o", "pending", far, 10, 0, ""))
}

func TestVerdicts(t *testing.T) {
	pending := promiseOf("o", "pending", far, 10, 0, "")
	for _, c := range []struct {
		name    string
		history *builder
		isRight bool
	}{
		{"a create that is repeated", new(builder).
			add(10, createOf("o", far), 200, pending).
			add(11, createOf("o", far+1), 200, pending), true},
		{"an acknowledged create that is lost", new(builder).
			add(10, createOf("o", far), 200, pending).
			add(11, getOf("o"), 404, ""), false},
		{"a create that was lost in a crash and happened", new(builder).
			during(1, 2, 10, 20, createOf("o", far), 0, "").
			add(20, getOf("o"), 200, promiseOf("o", "pending", far, 15, 0, "")), true},
		{"a create that was lost in a crash and did not happen", new(builder).
			during(1, 2, 10, 20, createOf("o", far), 0, "").
			add(20, getOf("o"), 404, ""), true},
		{"a create that happens after the crash that it was lost in", new(builder).
			during(1, 2, 10, 20, createOf("o", far), 0, "").
			add(20, getOf("o"), 404, "").
			add(21, getOf("o"), 200, promiseOf("o", "pending", far, 15, 0, "")), false},
		{"a creation at a time before the request", new(builder).
			add(10, createOf("o", far), 200, promiseOf("o", "pending", far, 9, 0, "")), false},
		{"a settlement that is repeated", job(far).
			add(20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")).
			add(21, settleOf("o:1", "rejected", "b"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")), true},
		{"a settlement that changes", job(far).
			add(20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")).
			add(21, settleOf("o:1", "rejected", "b"), 200, promiseOf("o:1", "rejected", 50, 11, 21, "b")), false},
		{"two settlements at once, of which one wins", job(far).
			during(7, 10, 20, 20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "rejected", 50, 11, 20, "b")).
			during(8, 9, 20, 20, settleOf("o:1", "rejected", "b"), 200, promiseOf("o:1", "rejected", 50, 11, 20, "b")), true},
		{"two settlements at once that both win", job(far).
			during(7, 10, 20, 20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")).
			during(8, 9, 20, 20, settleOf("o:1", "rejected", "b"), 200, promiseOf("o:1", "rejected", 50, 11, 20, "b")), false},
		{"a promise that times out at its deadline", job(far).
			add(49, getOf("o:1"), 200, promiseOf("o:1", "pending", 50, 11, 0, "")).
			add(60, getOf("o:1"), 200, promiseOf("o:1", "rejected_timedout", 50, 11, 50, "")), true},
		{"a promise that is pending after its deadline", job(far).
			add(60, getOf("o:1"), 200, promiseOf("o:1", "pending", 50, 11, 0, "")), false},
		{"a promise that times out before its deadline", job(far).
			add(40, getOf("o:1"), 200, promiseOf("o:1", "rejected_timedout", 50, 11, 50, "")), false},
		{"two holders of one version", job(far).
			add(13, fmt.Sprintf(acquired, 0, "p2", far), 200, fmt.Sprintf(taken, 1, "p2", far)+","+pending), false},
		{"a lease that ends when it is due", job(20).
			add(40, taskOf("o"), 200, stateOf("pending", 1, 0)), true},
		{"a lease that has not ended yet though it is due", job(20).
			add(40, taskOf("o"), 200, fmt.Sprintf(taken, 1, "p1", 20)), true},
		{"a lease that ends too early", job(20).
			add(31, taskOf("o"), 200, stateOf("pending", 1, 0)), false},
		{"a suspended task that its child resumes", job(far).
			add(20, suspendOf(1, "o:1"), 200, "").
			add(21, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 21, "a")).
			add(22, taskOf("o"), 200, stateOf("pending", 1, 1)), true},
		{"a suspended task that sleeps through the settlement", job(far).
			add(20, suspendOf(1, "o:1"), 200, "").
			add(21, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 21, "a")).
			add(22, taskOf("o"), 200, stateOf("suspended", 1, 0)), false},
		{"a suspended task that is resumed by a deadline, sooner or later", job(far).
			add(20, suspendOf(1, "o:1"), 200, "").
			add(60, taskOf("o"), 200, stateOf("suspended", 1, 0)).
			add(60, taskOf("o"), 200, stateOf("pending", 1, 1)), true},
		{"a suspended task that nothing has resumed", job(far).
			add(20, suspendOf(1, "o:1"), 200, "").
			add(21, taskOf("o"), 200, stateOf("pending", 1, 1)), false},
		{"a task that is told to go on as its child has settled", job(far).
			add(20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")).
			add(21, suspendOf(1, "o:1"), 300, ""), true},
		{"a task that suspends on what has settled", job(far).
			add(20, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 20, "a")).
			add(21, suspendOf(1, "o:1"), 200, ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			histories, err := read(strings.NewReader(strings.Join(c.history.lines, "\n")))
			if err != nil || len(histories) != 1 {
				t.Fatal(err, len(histories))
			}
			if found := check(protocol{}, histories[0]) != illegal; found != c.isRight {
				t.Errorf("linearizable: %t, not %t", found, c.isRight)
			}
		})
	}
}

func TestSmallest(t *testing.T) {
	history := job(far).
		add(20, taskOf("o:1"), 200, `"task":{"id":"o:1","state":"pending"}`).
		add(30, settleOf("o:1", "resolved", "a"), 200, promiseOf("o:1", "resolved", 50, 11, 30, "a")).
		add(31, getOf("o:2"), 404, "").
		add(32, getOf("o:1"), 200, promiseOf("o:1", "pending", 50, 11, 0, "")).
		add(33, settleOf("o", "resolved", "b"), 200, promiseOf("o", "resolved", far, 10, 33, "b"))
	histories, err := read(strings.NewReader(strings.Join(history.lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{}
	for _, entry := range smallest(protocol{}, histories) {
		kinds = append(kinds, entry.Kind)
	}
	want := "promise.create promise.create task.acquire promise.settle promise.get"
	if found := strings.Join(kinds, " "); found != want {
		t.Errorf("%s, not %s", found, want)
	}
}

func TestTwoOrigins(t *testing.T) {
	line := `{"kind":"promise.register_callback","data":{"awaited":"o:1","awaiter":"q"}}`
	if _, err := read(strings.NewReader(line)); err == nil {
		t.Error("a request across origins must be refused")
	}
}
