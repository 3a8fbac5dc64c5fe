package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"slipway/backend/session"
)

// Work is an operation as its worker sees it. Its methods are safe for concurrent use, and do nothing after the end.
type Work struct {
	registry  *operations
	operation *operation
}

// change calls fn with the lock held and publishes the operation.
func (w *Work) change(fn func(*operation)) {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	if w.operation.State.Ended() {
		return
	}
	fn(w.operation)
	w.registry.publish(w.operation)
}

func (w *Work) Plan(steps ...Step) {
	w.change(func(one *operation) {
		for _, step := range steps {
			step.State = StepPending
			if len(one.Steps) < stepsMost && one.step(step.Name) == nil {
				one.Steps = append(one.Steps, step)
			}
		}
	})
}

// step is called with the lock held.
func (one *operation) step(name string) *Step {
	if i := slices.IndexFunc(one.Steps, func(s Step) bool { return s.Name == name }); i >= 0 {
		return &one.Steps[i]
	}
	return nil
}

// Begin starts a step. Title may be empty for a planned one.
func (w *Work) Begin(name, title string) { w.Tell(Step{Name: name, Title: title, State: StepRunning}) }

// Tell records the state of a step, by its name. It sets the times of the step.
func (w *Work) Tell(step Step) {
	now := w.registry.now()
	w.change(func(one *operation) {
		if one.step(step.Name) == nil && len(one.Steps) < stepsMost {
			one.Steps = append(one.Steps, Step{Name: step.Name})
		}
		known := one.step(step.Name)
		if known == nil {
			return
		}
		known.Title = cmp.Or(step.Title, known.Title)
		known.State, known.Detail, known.Remedy, known.EndedAt = step.State, step.Detail, step.Remedy, &now
		if step.State == StepPending || step.State == StepRunning {
			known.EndedAt = nil
		}
		if step.State != StepPending {
			known.StartedAt = cmp.Or(known.StartedAt, &now)
		}
	})
}

// Do runs one step. The step ends as ok with the detail that do returns, or as failed.
func (w *Work) Do(name, title string, do func() (detail string, err error)) error {
	w.Begin(name, title)
	detail, err := do()
	if err != nil {
		return w.fail(name, err)
	}
	w.Tell(Step{Name: name, State: StepOK, Detail: detail})
	return nil
}

func (w *Work) fail(name string, err error) error {
	e := session.AsError(err, session.CodeOperationFailed)
	w.Tell(Step{Name: name, State: StepFailed, Detail: e.Message, Remedy: e.Hint})
	return err
}

// Concerns sets the agent that the operation adds or changes.
func (w *Work) Concerns(agent string) { w.change(func(one *operation) { one.Agent = agent }) }

// Makes sets the image that the operation creates or transfers.
func (w *Work) Makes(image string) { w.change(func(one *operation) { one.Image = image }) }

// Shows sets steps as they are done elsewhere, and the end of what they printed.
func (w *Work) Shows(steps []Step, log string) {
	w.change(func(one *operation) {
		one.Log = log
		for _, step := range steps {
			if known := one.step(step.Name); known != nil {
				*known = step
			} else if len(one.Steps) < stepsMost {
				one.Steps = append(one.Steps, step)
			}
		}
	})
}

// Progress sets the progress in bytes. It may be called at any rate.
func (w *Work) Progress(done, total int64) {
	now := w.registry.now()
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	one := w.operation
	if one.State.Ended() {
		return
	}
	progress, due := one.meter.take(now, done, total)
	one.Progress = &progress
	if due {
		w.registry.publish(one)
	}
}

// Ask asks a person, for askMost at most (operation_run_timeout). The answer is never stored or logged.
func (w *Work) Ask(ctx context.Context, prompt Prompt) (string, error) {
	prompt.ID = newID()
	answer := make(chan string, 1)
	w.change(func(one *operation) {
		one.Prompt, one.State, one.answer = &prompt, OperationWaiting, answer
	})
	timer := time.NewTimer(askMost)
	defer timer.Stop()
	var err error
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = session.NewError(session.CodeOperationTimeout, "No answer: "+prompt.Text,
			"Start again and answer the question.")
	}
	w.change(func(one *operation) {
		if one.Prompt != nil && one.Prompt.ID == prompt.ID {
			one.Prompt, one.State = nil, OperationRunning
		}
	})
	return "", err
}

// cancelled reports whether a person cancelled the operation, rather than Slipway shutting down.
func (w *Work) cancelled() bool {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	return w.operation.asked
}

// end records how the work ended, and ends its steps.
func (w *Work) end(err error) {
	now := w.registry.now()
	w.change(func(one *operation) {
		one.Prompt, one.EndedAt, one.State = nil, &now, OperationDone
		switch {
		case err == nil:
		case one.asked || w.registry.closed || errors.Is(err, errStopped):
			one.State = OperationCancelled
		default:
			one.State, one.Error = OperationFailed, problemOf(err, one.Kind)
		}
		for i := range one.Steps {
			switch step := &one.Steps[i]; step.State {
			case StepRunning:
				step.State, step.EndedAt = StepSkipped, &now
				if one.State == OperationFailed {
					step.State = StepFailed
				}
			case StepPending:
				step.State = StepSkipped
			}
		}
	})
}

type meter struct {
	at    []time.Time
	done  []int64
	told  time.Time
	total int64
}

const rateOver = 5 * time.Second // how long a rate is measured

// take returns the progress and whether to publish it.
func (m *meter) take(now time.Time, done, total int64) (Progress, bool) {
	if len(m.done) > 0 && done < m.done[len(m.done)-1] || total != m.total {
		m.at, m.done = nil, nil // something else is counted now
	}
	m.total = total
	if len(m.at) == 0 || now.Sub(m.at[len(m.at)-1]) >= tellEvery/2 {
		m.at, m.done = append(m.at, now), append(m.done, done)
	}
	for len(m.at) > 2 && now.Sub(m.at[0]) > rateOver {
		m.at, m.done = m.at[1:], m.done[1:]
	}
	progress := Progress{Done: done, Total: total}
	if span := now.Sub(m.at[0]); span >= tellEvery {
		progress.Rate = int64(float64(done-m.done[0]) / span.Seconds())
	}
	if progress.Rate > 0 && total > 0 {
		progress.Left = new(float64(total-done) / float64(progress.Rate))
	}
	due := now.Sub(m.told) >= tellEvery || total > 0 && done >= total
	if due {
		m.told = now
	}
	return progress, due
}
