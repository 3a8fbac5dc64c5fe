package cli

import (
	"slipway/backend/api"
	"slipway/backend/hub"
)

func sampleServiceReport() api.ServiceReport {
	row := func(token string, requests, failed int64) hub.ServiceUsage {
		u := hub.ServiceUsage{ServiceKey: hub.ServiceKey{Start: noon, Agent: "lab", Service: "llama", Owner: "ada",
			TokenName: token}, Requests: requests, FirstWord: hub.Percentiles{P50: 180, P99: 1400}}
		u.Answered, u.Failed, u.Prompt, u.Completion = requests-failed, failed, 40*requests, 120*requests
		return u
	}
	total := row("", 1250, 3)
	total.ServiceKey, total.AllocGPUMs, total.EnergyDynamic = hub.ServiceKey{Start: noon}, 9*3_600_000, 1_440_000_000
	total.WhPerThousandTokens = pointer(2.6667)
	open := row("", 50, 0)
	open.FirstWord = hub.Percentiles{}
	return api.ServiceReport{From: noon.AddDate(0, 0, -7), To: noon, By: "token",
		Rows: []hub.ServiceUsage{row("editor", 1200, 3), open}, Total: total, Missing: []string{}}
}
