package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Entry is a request of a recorded history and its answer.
type Entry struct {
	History int     `json:"history"`
	Client  int     `json:"client"`
	Kind    string  `json:"kind"`
	Data    Request `json:"data"`
	// Positions in the order of all requests sent and answers received.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`
	// Bounds of the server's clock while the request was under way, in milliseconds since the epoch.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
	// Nil when the server was killed before it answered: the request may have had its effect.
	Answer *Answer `json:"answer"`
}

// Request holds the data of a request of any kind.
type Request struct {
	ID        string            `json:"id"`
	TimeoutAt int64             `json:"timeoutAt"`
	Param     Value             `json:"param"`
	Tags      map[string]string `json:"tags"`
	State     string            `json:"state"`
	Value     Value             `json:"value"`
	Awaited   string            `json:"awaited"`
	Awaiter   string            `json:"awaiter"`
	Version   int               `json:"version"`
	PID       string            `json:"pid"`
	TTL       int64             `json:"ttl"`
	Tasks     []Request         `json:"tasks"`
	Action    *Action           `json:"action"`
	Actions   []Action          `json:"actions"`
}

// Action is a request within a request.
type Action struct {
	Kind string  `json:"kind"`
	Data Request `json:"data"`
}

// Value is the value of a promise.
type Value struct {
	Data string `json:"data"`
}

// Answer is a status with its records. A refusal has only a status.
type Answer struct {
	Status int
	Records
}

// Records are the records in an answer. Which of them it has depends on the kind of request.
type Records struct {
	Promise *PromiseRecord `json:"promise"`
	Task    *TaskRecord    `json:"task"`
	Action  *struct {
		Head struct{ Status int }
		Data json.RawMessage
	} `json:"action"`
}

// PromiseRecord is a promise as an answer shows it.
type PromiseRecord struct {
	ID        string            `json:"id"`
	State     string            `json:"state"`
	Param     Value             `json:"param"`
	Value     Value             `json:"value"`
	Tags      map[string]string `json:"tags"`
	TimeoutAt int64             `json:"timeoutAt"`
	CreatedAt int64             `json:"createdAt"`
	SettledAt int64             `json:"settledAt"`
}

// TaskRecord is a task as an answer shows it.
type TaskRecord struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Version int    `json:"version"`
	Resumes count  `json:"resumes"`
	PID     string `json:"pid"`
	TTL     int64  `json:"ttl"`
}

// count is a number, or the length of a list.
type count int

func (c *count) UnmarshalJSON(text []byte) error {
	var list []string
	if json.Unmarshal(text, &list) == nil {
		*c = count(len(list))
		return nil
	}
	return json.Unmarshal(text, (*int)(c))
}

// UnmarshalJSON reads the records of a success; a refusal holds a text instead.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var raw struct {
		Status int
		Data   json.RawMessage
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	a.Status = raw.Status
	return decodeRecords(raw.Data, &a.Records)
}

func decodeRecords(data json.RawMessage, records *Records) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil
	}
	return json.Unmarshal(data, records)
}

// inner is the answer to the action of a fence; nil if there is none.
func (a *Answer) inner() *Answer {
	if a.Action == nil {
		return nil
	}
	inner := &Answer{Status: a.Action.Head.Status}
	if decodeRecords(a.Action.Data, &inner.Records) != nil {
		return nil
	}
	return inner
}

// created is the request that creates a promise: this one or its action; nil if neither does.
func (e *Entry) created() *Request {
	switch {
	case e.Kind == "promise.create":
		return &e.Data
	case e.Data.Action != nil && e.Data.Action.Kind == "promise.create":
		return &e.Data.Action.Data
	}
	return nil
}

// ids are the ids of the promises and tasks that a request names, its subject first.
func (e *Entry) ids() []string {
	var ids []string
	add := func(id string) {
		if id != "" {
			ids = append(ids, id)
		}
	}
	add(e.Data.ID)
	add(e.Data.Awaited)
	add(e.Data.Awaiter)
	for _, task := range e.Data.Tasks {
		add(task.ID)
	}
	if e.Data.Action != nil {
		add(e.Data.Action.Data.ID)
	}
	for _, action := range e.Data.Actions {
		add(action.Data.Awaited)
	}
	return ids
}

func origin(id string) string {
	before, _, _ := strings.Cut(id, ":")
	return before
}

// read groups the entries by history and origin. Origins do not affect each other, so each group is checked separately. A
// request that names two origins is an error.
func read(from io.Reader) ([][]Entry, error) {
	byOrigin := map[string]int{}
	var histories [][]Entry
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var entry Entry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, fmt.Errorf("%w in %s", err, lines.Text())
		}
		ids := entry.ids()
		if len(ids) == 0 {
			return nil, fmt.Errorf("no id in %s", lines.Text())
		}
		for _, id := range ids {
			if origin(id) != origin(ids[0]) {
				return nil, fmt.Errorf("two origins in %s", lines.Text())
			}
		}
		key := fmt.Sprint(entry.History, " ", origin(ids[0]))
		at, isKnown := byOrigin[key]
		if !isKnown {
			at = len(histories)
			byOrigin[key] = at
			histories = append(histories, nil)
		}
		histories[at] = append(histories[at], entry)
	}
	return histories, lines.Err()
}
