package accounts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// answered is one request with these tokens.
func answered(prompt, completion int64) (r session.Requests) {
	r.Answered, r.Prompt, r.Completion, r.BytesIn, r.BytesOut = 1, prompt, completion, 10*prompt, 10*completion
	r.FirstWord.Add(time.Duration(prompt) * time.Millisecond)
	r.Whole.Add(time.Duration(prompt+completion) * time.Millisecond)
	return r
}

// anyRequest is a request that ends in any way.
func anyRequest(rng *rand.Rand) session.Requests {
	if rng.IntN(3) > 0 {
		return answered(rng.Int64N(2000), rng.Int64N(500))
	}
	var r session.Requests
	*[]*int64{&r.Failed, &r.Cut, &r.Left, &r.Refused, &r.Limited}[rng.IntN(5)] = 1
	return r
}

// served are the accounts of requests, by what they are counted by.
func (k *bookkeeper) served(span session.AccountSpan) map[Asked]session.Requests {
	k.t.Helper()
	rows, err := k.books.ReadServices(k.clock.now(), span)
	if err != nil {
		k.t.Fatal(err)
	}
	sums := map[Asked]session.Requests{}
	for _, row := range rows {
		if row.Kind == session.AccountRequests {
			of := Asked{row.Service, row.Owner, row.Revision, row.Token}
			sum := sums[of]
			sum.Add(row.Requests)
			sums[of] = sum
		}
	}
	return sums
}

// clone copies sums, whose distributions would else share their steps.
func clone(sums map[Asked]session.Requests) map[Asked]session.Requests {
	copied := map[Asked]session.Requests{}
	for of, r := range sums {
		var sum session.Requests
		sum.Add(r)
		copied[of] = sum
	}
	return copied
}

// TestNoRequestIsCountedTwiceOrLost lets requests, checkpoints, restarts, crashes and a full disk take turns. A crash
// loses what came since the last checkpoint, and nothing else differs from what was counted.
func TestNoRequestIsCountedTwiceOrLost(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				k := newBookkeeper(t)
				from := time.Now().Add(-time.Hour)
				now, stored := map[Asked]session.Requests{}, map[Asked]session.Requests{}
				for range 300 {
					time.Sleep(time.Duration(rng.IntN(600)) * time.Second)
					switch rng.IntN(20) {
					case 0: // killed
						k.reopen()
						now = clone(stored)
					case 1: // restarted
						if err := k.books.Checkpoint(k.clock.now(), true); err != nil {
							t.Fatal(err)
						}
						stored = clone(now)
						k.reopen()
					case 2: // nothing can be stored for a while
						k.fail = errors.New("the disk is full")
						if k.books.Checkpoint(k.clock.now(), false) == nil {
							t.Fatal("a full disk stores it")
						}
						k.fail = nil
					case 3:
						if err := k.books.Checkpoint(k.clock.now(), false); err != nil {
							t.Fatal(err)
						}
						stored = clone(now)
					default:
						of := Asked{"chat", "ada", 1 + rng.IntN(2), []string{"", "t1", "t2"}[rng.IntN(3)]}
						d := anyRequest(rng)
						k.books.Count(k.clock.now().Wall, of, "", d)
						sum := now[of]
						sum.Add(d)
						now[of] = sum
					}
				}
				for _, bucket := range []time.Duration{0, time.Hour, 24 * time.Hour} {
					got := k.served(session.AccountSpan{From: from, Bucket: bucket})
					if len(got) != len(now) {
						t.Errorf("%d sums, want %d", len(got), len(now))
					}
					for of, want := range now {
						if !reflect.DeepEqual(got[of], want) {
							t.Errorf("%+v\ngot  %+v\nwant %+v", of, got[of], want)
						}
					}
				}
			})
		})
	}
}

func TestAccountsOfServicesHaveTheUseOfTheirReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-time.Hour)
		k.live[0].Spec.Serving = &session.Serving{Service: "chat", Revision: 3}
		k.work(10*time.Minute, time.Minute)
		of := Asked{"chat", "ada", 3, "t1"}
		k.books.Count(k.clock.now().Wall, of, "editor", answered(5, 6))
		k.books.Count(k.clock.now().Wall, of, "", answered(5, 6)) // it was revoked meanwhile
		k.reopen()                                                // without a checkpoint
		k.books.Count(k.clock.now().Wall, of, "editor", answered(5, 6))
		rows, err := k.books.ReadServices(k.clock.now(), session.AccountSpan{From: from})
		if err != nil || len(rows) != 3 {
			t.Fatalf("%+v, %v", rows, err)
		}
		if none := rows[0]; none.Revision != 1 || none.Token != "" || none.Answered != 10 {
			t.Errorf("without a token: %+v", none)
		}
		i := slices.IndexFunc(rows, func(r session.ServiceAccount) bool { return r.Kind == session.AccountReplicas })
		if use := rows[i]; use.Revision != 3 || use.Owner != "ada" || use.AllocCPUMs != 2*600_000 || use.Total() != 0 {
			t.Errorf("replicas: %+v", use)
		}
		i = slices.IndexFunc(rows, func(r session.ServiceAccount) bool { return r.Token == "t1" })
		if one := rows[i]; one.TokenName != "editor" || one.Answered != 1 || one.AllocCPUMs != 0 {
			t.Errorf("with a token: %+v", one)
		}
	})
}

func TestWhatAReplicaReportsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		of := Asked{"chat", "ada", 1, ""}
		for range 3 {
			k.books.Count(k.clock.now().Wall, of, "", session.Requests{RequestCounts: session.RequestCounts{Answered: 1,
				Prompt: -5, Completion: 1 << 62}})
		}
		got := k.served(session.AccountSpan{From: time.Now().Add(-time.Hour)})[of]
		if got.Prompt != 0 || got.Completion != 3*mostTokensOf {
			t.Errorf("counted as %+v", got)
		}
	})
}

func TestManyTokensAreWrittenInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-time.Hour)
		const tokens = 3 * mostRequestRows
		for range 2 {
			for i := range tokens {
				k.books.Count(k.clock.now().Wall, Asked{"chat", "ada", 1, fmt.Sprint("t", i)}, "", answered(1, 1))
			}
		}
		for _, bucket := range k.books.requests.state.Buckets {
			if len(bucket.Rows) > mostRequestRows {
				t.Errorf("a bucket of a %s has %d rows", bucket.Span, len(bucket.Rows))
			}
		}
		got := k.served(session.AccountSpan{From: from})
		if len(got) != tokens {
			t.Errorf("%d tokens, want %d", len(got), tokens)
		}
		for of, r := range got {
			if r.Answered != 2 {
				t.Errorf("%s is counted %d times", of.Token, r.Answered)
			}
		}
		if err := k.books.Checkpoint(gpu.Moment{Wall: time.Now()}, true); err != nil {
			t.Error(err)
		}
	})
}
