package main

// reply is what a request is answered with. Its records are those of the state.
type reply struct {
	status    int
	promiseID string
	promise   *promise
	taskID    string
	task      *task
	inner     *reply
}

var (
	done      = reply{status: 200}
	missing   = reply{status: 404}
	refused   = reply{status: 409}
	undoable  = reply{status: 422}
	goOn      = reply{status: 300}
	malformed = reply{status: 400}
)

// protocol is what the server does with each kind of request.
type protocol struct {
	// The rules of Resonate's own server, as far as they are others: register_callback on a settled promise resumes its awaiter
	// at once, and a request reads the clock before it waits for its turn, so that times are not in the order of what happened.
	isReal bool
}

// apply carries out a request at a time that no deadline divides, and changes the state.
func (p protocol) apply(s *state, kind string, r *Request, now span) reply {
	switch kind {
	case "promise.get":
		return s.read(r.ID)
	case "promise.create":
		return s.create(r, now)
	case "promise.settle":
		return s.settleAsked(r, now)
	case "promise.register_callback":
		return p.registerCallback(s, r)
	case "promise.register_listener":
		return s.read(r.Awaited)
	case "task.get":
		return s.readTask(r.ID)
	case "task.create":
		return s.createTask(r, now)
	case "task.acquire":
		return s.acquire(r, now)
	case "task.heartbeat":
		for _, ref := range r.Tasks {
			if t := s.tasks[ref.ID]; t != nil && t.state == "acquired" && t.version == ref.Version && t.pid == r.PID {
				t.due = now.from + t.ttl
			}
		}
		return done
	case "task.halt":
		return s.halt(r.ID)
	case "task.continue":
		return s.proceed(r.ID)
	case "task.release", "task.suspend", "task.fulfill", "task.fence":
		t := s.tasks[r.ID]
		if t == nil {
			return missing
		}
		if t.state != "acquired" || t.version != r.Version {
			return refused
		}
		return s.asHolder(kind, r, t, now)
	}
	return malformed
}

// asHolder carries out what only the holder of a task may ask for.
func (s *state) asHolder(kind string, r *Request, t *task, now span) reply {
	switch kind {
	case "task.release":
		s.release(r.ID)
		return done
	case "task.suspend":
		return s.suspend(r, t)
	case "task.fulfill":
		return s.settleAsked(&r.Action.Data, now)
	}
	var inner reply
	if r.Action.Kind == "promise.create" {
		inner = s.create(&r.Action.Data, now)
	} else {
		inner = s.settleAsked(&r.Action.Data, now)
	}
	return reply{status: 200, inner: &inner}
}

func (s *state) read(id string) reply {
	p := s.promises[id]
	if p == nil {
		return missing
	}
	return reply{status: 200, promiseID: id, promise: p}
}

func (s *state) readTask(id string) reply {
	t := s.tasks[id]
	if t == nil {
		return missing
	}
	return reply{status: 200, taskID: id, task: t}
}

func (s *state) create(r *Request, now span) reply {
	if s.promises[r.ID] == nil {
		p := &promise{state: "pending", param: r.Param.Data, tags: r.Tags, timeoutAt: r.TimeoutAt, created: now}
		s.promises[r.ID] = p
		isLate := r.TimeoutAt <= now.from
		if isLate {
			p.state, p.created, p.settled = timedOut(r.Tags), at(r.TimeoutAt), at(r.TimeoutAt)
		}
		if r.Tags["resonate:target"] != "" {
			s.tasks[r.ID] = &task{state: "pending"}
			if isLate {
				s.tasks[r.ID].state = "fulfilled"
			}
		}
	}
	return s.read(r.ID)
}

func (s *state) settleAsked(r *Request, now span) reply {
	p := s.promises[r.ID]
	if p != nil && p.state == "pending" {
		s.settle(r.ID, r.State, r.Value.Data, now)
	}
	return s.read(r.ID)
}

func (p protocol) registerCallback(s *state, r *Request) reply {
	awaited, awaiter := s.promises[r.Awaited], s.promises[r.Awaiter]
	if awaited == nil {
		return missing
	}
	if awaiter == nil || s.tasks[r.Awaiter] == nil {
		return undoable
	}
	if awaiter.state == "pending" {
		if awaited.state == "pending" {
			awaited.awaiters = with(awaited.awaiters, r.Awaiter)
		} else if p.isReal && s.tasks[r.Awaiter].state != "halted" {
			s.resume(r.Awaiter, r.Awaited)
		}
	}
	return s.read(r.Awaited)
}

func (s *state) createTask(r *Request, now span) reply {
	id := r.Action.Data.ID
	if s.promises[id] != nil && s.tasks[id] == nil {
		return undoable
	}
	if s.tasks[id] == nil {
		s.create(&r.Action.Data, now)
	}
	t := s.tasks[id]
	switch t.state {
	case "pending":
		s.lease(t, r, now)
	case "acquired", "suspended", "halted":
		return refused
	}
	return reply{status: 200, promiseID: id, promise: s.promises[id], taskID: id, task: t}
}

func (s *state) acquire(r *Request, now span) reply {
	t := s.tasks[r.ID]
	if t == nil {
		return missing
	}
	if t.state != "pending" || t.version != r.Version {
		return refused
	}
	s.lease(t, r, now)
	return reply{status: 200, promiseID: r.ID, promise: s.promises[r.ID], taskID: r.ID, task: t}
}

func (s *state) lease(t *task, r *Request, now span) {
	*t = task{state: "acquired", version: t.version + 1, pid: r.PID, ttl: r.TTL, due: now.from + r.TTL}
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
	*t = task{state: "suspended", version: t.version}
	return done
}

func (s *state) halt(id string) reply {
	t := s.tasks[id]
	if t == nil {
		return missing
	}
	if t.state == "fulfilled" {
		return refused
	}
	s.release(id)
	t.state = "halted"
	return done
}

func (s *state) proceed(id string) reply {
	t := s.tasks[id]
	if t == nil {
		return missing
	}
	if t.state != "halted" {
		return refused
	}
	t.state = "pending"
	return done
}

// matches tells whether the answer is this reply, and learns from it when the promise was created and settled.
func (r reply) matches(answer *Answer) bool {
	if answer.Status != r.status {
		return false
	}
	if r.promise != nil && !r.promise.matches(r.promiseID, answer.Promise) {
		return false
	}
	if r.task != nil && !r.task.matches(r.taskID, answer.Task) {
		return false
	}
	if r.inner != nil {
		inner := answer.inner()
		return inner != nil && r.inner.matches(inner)
	}
	return true
}

func (p *promise) matches(id string, shown *PromiseRecord) bool {
	if shown == nil || shown.ID != id || shown.State != p.state || shown.TimeoutAt != p.timeoutAt {
		return false
	}
	if shown.Param.Data != p.param || shown.Value.Data != p.value || len(shown.Tags) != len(p.tags) {
		return false
	}
	for name, value := range p.tags {
		if shown.Tags[name] != value {
			return false
		}
	}
	return p.created.learn(shown.CreatedAt) && p.settled.learn(shown.SettledAt)
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
