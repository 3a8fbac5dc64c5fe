package session

import (
	"testing"
	"time"
)

func TestTheDeadlineIsThatOfTheFirstCheckThatCountsDown(t *testing.T) {
	in := func(minutes int) *time.Time { return new(now.Add(time.Duration(minutes) * time.Minute)) }
	warned := []Warning{{Code: CodeDeviceLost}, {Code: CodeIdleUtilization}}
	for name, c := range map[string]struct {
		status    Status
		warnings  []Warning
		idle      []IdleCheck
		want      IdleChecker
		announced bool
	}{
		"the first": {Running, nil, []IdleCheck{{Checker: CheckLifetime, State: IdleActive, ExpiresAt: in(9)},
			{Checker: CheckNetwork, State: IdleIdle, ExpiresAt: in(5)}}, CheckNetwork, false},
		"announced": {Running, warned, []IdleCheck{{Checker: CheckUse, State: IdleIdle, ExpiresAt: in(5)}},
			CheckUse, true},
		"of another check announced": {Running, warned,
			[]IdleCheck{{Checker: CheckLifetime, State: IdleIdle, ExpiresAt: in(5)}}, CheckLifetime, false},
		"none in use": {Running, nil, []IdleCheck{{Checker: CheckNetwork, State: IdleActive, ExpiresAt: in(5)}},
			"", false},
		"none of what is unknown": {Running, nil, []IdleCheck{{Checker: CheckUse, State: IdleUnknown,
			ExpiresAt: in(5)}, {Checker: CheckUse, State: IdleGrace, ExpiresAt: in(5)}, {Checker: CheckUse,
			State: IdleActive}}, "", false},
		"none after the end": {Terminated, warned, []IdleCheck{{Checker: CheckUse, State: IdleIdle, ExpiresAt: in(5)}},
			"", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Session{Status: c.status, Progress: Progress{Idle: c.idle, Warnings: c.warnings}}
			got, announced := s.Deadline()
			if (got == nil) != (c.want == "") || got != nil && got.Checker != c.want || announced != c.announced {
				t.Errorf("got %+v, %t", got, announced)
			}
		})
	}
}
