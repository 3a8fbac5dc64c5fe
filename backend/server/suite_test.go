package server_test

import (
	"testing"

	"slipway/backend/api/apitest"
	"slipway/backend/session"
)

func TestServerKeepsItsPromises(t *testing.T) {
	apitest.Run(t, func(t *testing.T) apitest.Plane {
		w := start(t)
		return apitest.Plane{URL: w.url, Token: token, Put: func(s session.Session) { w.agent.Put(s) }}
	})
}
