package slurm

import (
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

// The most options by hand, and their length in bytes.
const (
	maxExtra       = 32
	maxExtraLength = 256
)

// value says whether an option of sbatch has one.
type value uint8

const (
	valueNone value = iota
	valueOptional
	valueRequired
)

// extras are the options of sbatch that may be added by hand. Others are set by Slipway, read files of the login node,
// or change how a session starts and ends.
var extras = map[string]value{
	"acctg-freq": valueRequired, "batch": valueRequired, "bb": valueRequired, "cluster-constraint": valueRequired,
	"contiguous": valueNone, "core-spec": valueRequired, "cores-per-socket": valueRequired, "cpu-freq": valueRequired,
	"deadline": valueRequired, "delay-boot": valueRequired, "dependency": valueRequired,
	"distribution": valueRequired, "exclude": valueRequired, "exclusive": valueOptional,
	"extra-node-info": valueRequired, "gpu-freq": valueRequired, "gres-flags": valueRequired, "hint": valueRequired,
	"kill-on-invalid-dep": valueRequired, "licenses": valueRequired, "mail-type": valueRequired,
	"mail-user": valueRequired, "mcs-label": valueRequired, "mem-bind": valueRequired, "mincpus": valueRequired,
	"network": valueRequired, "nodelist": valueRequired, "oversubscribe": valueNone, "power": valueRequired,
	"prefer": valueRequired, "profile": valueRequired, "sockets-per-node": valueRequired, "spread-job": valueNone,
	"switches": valueRequired, "thread-spec": valueRequired, "threads-per-core": valueRequired,
	"time-min": valueRequired, "tmp": valueRequired, "use-min-nodes": valueNone, "wait-all-nodes": valueRequired,
	"wckey": valueRequired,
}

// ours are the options of sbatch that Slipway sets, or that would break a session.
var ours = strings.Fields(`account array begin chdir clusters comment constraint container cpus-per-gpu cpus-per-task
	error export export-file get-user-env gid gpu-bind gpus gpus-per-node gpus-per-socket gpus-per-task gres help hold
	ignore-pbs input job-name mem mem-per-cpu mem-per-gpu nice no-kill no-requeue nodefile nodes ntasks ntasks-per-core
	ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output overcommit parsable partition priority propagate
	qos quiet reboot requeue reservation signal test-only time uid usage verbose version wait wrap bbf`)

// CheckExtra returns what is wrong with options of sbatch by hand, such as --exclude=n[1-2]. The faults are of the
// fields field[0], field[1] and so on.
func CheckExtra(field string, extra []string) (faults []session.FieldError) {
	if len(extra) > maxExtra {
		return []session.FieldError{session.Fault(field, session.KindTooMany,
			session.Phrase{Say: "slurmOptionsMax", Count: maxExtra})}
	}
	seen := map[string]bool{}
	for i, option := range extra {
		name, kind, why := checkOption(option)
		if why == "" && seen[name] {
			kind, why = session.KindDuplicate, "slurmOptionTwice"
		}
		if seen[name] = true; why != "" {
			faults = append(faults, session.Fault(fmt.Sprintf("%s[%d]", field, i), kind,
				session.Say(why, session.Fill("option", clean("--"+name, maxExtraLength)))))
		}
	}
	return faults
}

// checkOption returns the name of an option, and which phrase says what is wrong with it; empty: nothing.
func checkOption(option string) (name string, kind session.Kind, why string) {
	name, text, valued := strings.Cut(strings.TrimPrefix(option, "--"), "=")
	wants, known := extras[name]
	switch {
	case !strings.HasPrefix(option, "--"), clean(option, maxExtraLength) != option:
		return name, session.KindInvalid, "slurmOptionForm"
	case slices.Contains(ours, name):
		return name, session.KindForbidden, "slurmOptionOurs"
	case !known:
		return name, session.KindUnknown, "slurmOptionUnknown"
	case wants == valueRequired && text == "", valued && text == "":
		return name, session.KindRequired, "slurmOptionValue"
	case wants == valueNone && valued:
		return name, session.KindInvalid, "slurmOptionNoValue"
	}
	return name, "", ""
}
