package main

import "maps"

// reply is the model's answer to a request. Its records are the state's own.
type reply struct {
	status  int
	id      string
	promise *promise
	task    *task
	inner   *reply
}

var (
	done     = reply{status: 200}
	goOn     = reply{status: 300}
	missing  = reply{status: 404}
	refused  = reply{status: 409}
	undoable = reply{status: 422}
)

// protocol describes the effect of each kind of request.
type protocol struct {
	// Whether the server is Resonate's own. There a request reads the clock before it waits for its turn, so requests may take
	// effect in another order than that of their times.
	isReal bool
}

// apply executes a request and changes the state. No deadline lies within the span `now`.
func (p protocol) apply(s *state, kind string, r *Request, now span) reply {
	switch kind {
	case "promise.get":
		return s.read(r.ID)
	case "promise.create":
		return s.create(r, now)
	case "promise.settle":
		return s.settleAsked(r, now)
	case "promise.register_callback":
		return s.registerCallback(r)
	case "promise.register_listener":
		return s.read(r.Awaited)
	case "task.create":
		return s.createTask(r, now)
	case "task.heartbeat":
		for _, ref := range r.Tasks {
			if t := s.tasks[ref.ID]; t != nil && t.isHeld(ref.Version) && t.pid == r.PID {
				t.due = now.from + t.ttl
			}
		}
		return done
	}
	t := s.tasks[r.ID]
	if t == nil {
		return missing
	}
	var isAllowed bool
	switch kind {
	case "task.get":
		return reply{status: 200, id: r.ID, task: t}
	case "task.acquire":
		isAllowed = t.state == "pending" && t.version == r.Version
	case "task.halt":
		isAllowed = t.state != "fulfilled"
	case "task.continue":
		isAllowed = t.state == "halted"
	default:
		isAllowed = t.isHeld(r.Version)
	}
	if !isAllowed {
		return refused
	}
	return s.work(kind, r, t, now)
}

// work executes a request about a task, if the task's state allows it.
func (s *state) work(kind string, r *Request, t *task, now span) reply {
	switch kind {
	case "task.acquire":
		t.lease(r, now)
		return reply{status: 200, id: r.ID, promise: s.promises[r.ID], task: t}
	case "task.halt":
		t.leave("halted")
	case "task.continue", "task.release":
		t.leave("pending")
	case "task.suspend":
		return s.suspend(r, t)
	case "task.fulfill":
		return s.settleAsked(&r.Action.Data, now)
	case "task.fence":
		var inner reply
		if r.Action.Kind == "promise.create" {
			inner = s.create(&r.Action.Data, now)
		} else {
			inner = s.settleAsked(&r.Action.Data, now)
		}
		return reply{status: 200, inner: &inner}
	}
	return done
}

func (s *state) read(id string) reply {
	if p := s.promises[id]; p != nil {
		return reply{status: 200, id: id, promise: p}
	}
	return missing
}

func (s *state) create(r *Request, now span) reply {
	if s.promises[r.ID] == nil {
		p := &promise{state: "pending", param: r.Param.Data, tags: r.Tags, timeoutAt: r.TimeoutAt, created: now}
		t := &task{state: "pending"}
		if r.TimeoutAt <= now.from {
			p.state, p.created, p.settled = timedOut(r.Tags), at(r.TimeoutAt), at(r.TimeoutAt)
			t.state = "fulfilled"
		}
		s.promises[r.ID] = p
		if r.Tags["resonate:target"] != "" {
			s.tasks[r.ID] = t
		}
	}
	return s.read(r.ID)
}

func (s *state) settleAsked(r *Request, now span) reply {
	if p := s.promises[r.ID]; p != nil && p.state == "pending" {
		s.settle(r.ID, r.State, r.Value.Data, now)
	}
	return s.read(r.ID)
}

func (s *state) registerCallback(r *Request) reply {
	awaited, awaiter, t := s.promises[r.Awaited], s.promises[r.Awaiter], s.tasks[r.Awaiter]
	switch {
	case awaited == nil:
		return missing
	case t == nil:
		return undoable
	case awaiter.state != "pending":
	case awaited.state == "pending":
		awaited.awaiters = with(awaited.awaiters, r.Awaiter)
	case t.state != "halted":
		t.resume(r.Awaited)
	}
	return s.read(r.Awaited)
}

func (s *state) createTask(r *Request, now span) reply {
	id := r.Action.Data.ID
	if s.promises[id] != nil && s.tasks[id] == nil {
		return undoable
	}
	s.create(&r.Action.Data, now)
	t := s.tasks[id]
	switch t.state {
	case "pending":
		t.lease(r, now)
	case "acquired", "suspended", "halted":
		return refused
	}
	return reply{status: 200, id: id, promise: s.promises[id], task: t}
}

func (s *state) suspend(r *Request, t *task) reply {
	isSettled := false
	for _, action := range r.Actions {
		awaited := s.promises[action.Data.Awaited]
		if awaited == nil {
			return undoable
		}
		isSettled = isSettled || awaited.state != "pending"
	}
	t.resumes = nil
	if isSettled {
		return goOn
	}
	for _, action := range r.Actions {
		awaited := s.promises[action.Data.Awaited]
		awaited.awaiters = with(awaited.awaiters, r.ID)
	}
	t.leave("suspended")
	return done
}

// matches compares the reply with a recorded answer, and takes the promise's times from it.
func (r reply) matches(answer *Answer) bool {
	return answer != nil && answer.Status == r.status &&
		(r.promise == nil || r.promise.matches(r.id, answer.Promise)) &&
		(r.task == nil || r.task.matches(r.id, answer.Task)) &&
		(r.inner == nil || r.inner.matches(answer.inner()))
}

func (p *promise) matches(id string, shown *PromiseRecord) bool {
	return shown != nil && shown.ID == id && shown.State == p.state && shown.TimeoutAt == p.timeoutAt &&
		shown.Param.Data == p.param && shown.Value.Data == p.value && maps.Equal(shown.Tags, p.tags) &&
		p.created.learn(shown.CreatedAt) && p.settled.learn(shown.SettledAt)
}

func (s *span) learn(time int64) bool {
	if time < s.from || time > s.until {
		return false
	}
	*s = at(time)
	return true
}

func (t *task) matches(id string, shown *TaskRecord) bool {
	return shown != nil && shown.ID == id && shown.State == t.state && shown.Version == t.version &&
		int(shown.Resumes) == len(t.resumes) && shown.PID == t.pid && shown.TTL == t.ttl
}
