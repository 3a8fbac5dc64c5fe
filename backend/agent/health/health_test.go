package health

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
)

type answering struct{}

func (answering) Info(context.Context) (engine.Info, error) { return engine.Info{Elsewhere: true}, nil }

func (answering) Watch(ctx context.Context, _ func(engine.State)) error {
	<-ctx.Done()
	return ctx.Err()
}

type noNews struct{}

func (noNews) PublishMachine() {}
func (noNews) PlanAgain()      {}

// What is started while records and containers are compared goes by what the
// engine says of itself, such as that its containers outlive this machine.
func TestTheEngineIsKnownBeforeItsContainersAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var seen State
		var w *Watch
		w = New(Config{Engine: answering{}, News: noNews{}, Log: slog.New(slog.DiscardHandler), Call: time.Minute,
			Every: time.Hour, Reconcile: func(context.Context) error {
				seen = w.State()
				return nil
			}})
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		synctest.Wait()
		if seen.Up || seen.Known || !seen.Info.Elsewhere || !w.State().Up {
			t.Errorf("it is %+v while they are compared, and then %+v", seen, w.State())
		}
		cancel()
		<-ended
	})
}

// growing is an engine that says something else each time.
type growing struct {
	answering
	asked int
}

func (g *growing) Info(context.Context) (engine.Info, error) {
	g.asked++
	return engine.Info{CPUs: min(g.asked, 3), Elsewhere: true}, nil
}

type countedNews struct {
	noNews
	published int
}

func (n *countedNews) PublishMachine() { n.published++ }

func TestWhatAnEngineSaysOfItselfIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		of, news := &growing{}, &countedNews{}
		w := New(Config{Engine: of, News: news, Log: slog.New(slog.DiscardHandler), Call: time.Minute,
			Every: time.Minute, Reconcile: func(context.Context) error { return nil }})
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if w.State().Info.CPUs != 3 || of.asked != 11 || news.published != 3 { // at its start, and for two changes
			t.Errorf("it is %+v, asked %d times, published %d times", w.State().Info, of.asked, news.published)
		}
		cancel()
		<-ended
	})
}
