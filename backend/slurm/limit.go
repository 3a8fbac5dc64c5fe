package slurm

import (
	"regexp"

	"slipway/backend/session"
)

// limit is a limit of an association or a QOS for which a job waits. Slurm has about 150 such reasons, whose names
// are made of the same parts.
type limit struct {
	whose string // key of the phrase: who has the limit
	what  string // key of the phrase: of what
	time  bool   // of what used over time, such as CPU minutes
	scope string // "job", "node": of one; "user", "account", "group": of all together; "least": a minimum
}

var limitName = regexp.MustCompile(`^(QOS|Assoc|Association)?(Grp|Max|Min)?` +
	`(CPU|Cpu|Mem|Memory|Node|GRES|BB|Billing|Energy|License|Unknown|Jobs|Job|SubmitJobs|SubmitJob|Wall|WallDuration|` +
	`Resource|Time)(Minutes|RunMinutes)?(PerJob|PerNode|PerUser|PerAccount)?(Limit|NotSatisfied)?$`)

// limited are the keys of the phrases about what is limited, and of what is used over time.
var limited = map[string][2]string{
	"CPU": {"slurmCPUs", "slurmCPUTime"}, "Cpu": {"slurmCPUs", "slurmCPUTime"},
	"Mem": {"slurmMemory", "slurmMemoryTime"}, "Memory": {"slurmMemory", "slurmMemoryTime"},
	"Node": {"slurmNodes", "slurmNodeTime"}, "GRES": {"slurmGPUs", "slurmGPUTime"},
	"BB": {"slurmBuffer", "slurmBuffer"}, "Billing": {"slurmBilling", "slurmBilling"},
	"Energy": {"slurmEnergy", "slurmEnergy"}, "License": {"slurmLicense", "slurmLicense"},
	"Unknown": {"slurmAmount", "slurmAmount"}, "Resource": {"slurmAmount", "slurmAmount"},
	"Jobs": {"slurmJobs", "slurmJobs"}, "Job": {"slurmJobs", "slurmJobs"},
	"SubmitJobs": {"slurmSubmitted", "slurmSubmitted"}, "SubmitJob": {"slurmSubmitted", "slurmSubmitted"},
	"Wall": {"slurmRunTime", "slurmRunTime"}, "WallDuration": {"slurmRunTime", "slurmRunTime"},
	"Time": {"slurmRunTime", "slurmRunTime"},
}

// scopes are the scopes of limits by the end of their names.
var scopes = map[string]string{"PerJob": "job", "PerNode": "node", "PerUser": "user", "PerAccount": "account"}

// limitOf reads a reason that is a limit. ok is false for others.
func limitOf(r Reason) (l limit, ok bool) {
	found := limitName.FindStringSubmatch(string(r))
	if found == nil || found[1] == "" && found[5] != "PerAccount" {
		return limit{}, false
	}
	l = limit{whose: "slurmAccount", what: limited[found[3]][0], time: found[4] != "", scope: scopes[found[5]]}
	if l.time {
		l.what = limited[found[3]][1]
	}
	if found[1] == "QOS" || found[1] == "" {
		l.whose = "slurmQOS"
	}
	switch {
	case found[2] == "Min":
		l.scope = "least"
	case l.scope == "" && (found[2] == "Grp" || found[1] == "Association" || found[2] == ""):
		l.scope = "group"
	case l.scope == "":
		l.scope = "user" // AssocMaxJobsLimit
	}
	return l, true
}

// limitWords are the keys of the sentences by scope.
var limitWords = map[string]string{"job": "slurmLimitJob", "node": "slurmLimitNode", "user": "slurmLimitUser",
	"account": "slurmLimitAccount", "group": "slurmLimitGroup", "least": "slurmLimitLeast"}

func (l limit) words() session.Phrase {
	return session.Say(limitWords[l.scope], session.Phrase{Hole: "whose", Say: l.whose},
		session.Phrase{Hole: "what", Say: l.what})
}

// never reports whether only another request can meet the limit.
func (l limit) never() bool { return l.scope == "job" || l.scope == "node" || l.scope == "least" }
