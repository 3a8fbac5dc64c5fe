package slurm

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Site is what a site offers to the user.
type Site struct {
	Version      string        // for example 22.05.8
	Cluster      string        // its name
	KillWait     time.Duration // between TERM and KILL when a job ends
	MinJobAge    time.Duration // how long squeue remembers a job that ended
	Proctrack    string        // how the site finds the processes of a job, for example proctrack/cgroup
	TimeRequired bool          // a job without a time limit is refused
	Partitions   []Partition
	Accounting   bool          // false: there are no accounts, or they cannot be asked
	Associations []Association // of this user
	QOS          []QOS
}

// Site asks what the site offers to the user, in three to five calls.
func (c *Client) Site(ctx context.Context) (site Site, err error) {
	out, err := c.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return Site{}, err
	}
	site.readConfig(out)
	partitions, err := c.run(ctx, "scontrol", "--oneliner", "show", "partition")
	if err != nil {
		return Site{}, err
	}
	nodes, err := c.run(ctx, "sinfo", "--noheader", "--exact", "--format="+shapeFields)
	if err != nil {
		return Site{}, err
	}
	site.Partitions = parsePartitions(partitions, nodes)
	if !site.Accounting {
		return site, nil
	}
	return site, c.readAccounts(ctx, &site)
}

// readConfig reads lines such as "KillWait                = 30 sec".
func (s *Site) readConfig(out []byte) {
	for line := range strings.Lines(string(out)) {
		name, text, _ := strings.Cut(line, "=")
		text = word(text)
		switch strings.TrimSpace(name) {
		case "SLURM_VERSION":
			s.Version = text
		case "ClusterName":
			s.Cluster = text
		case "KillWait":
			s.KillWait = seconds(text)
		case "MinJobAge":
			s.MinJobAge = seconds(text)
		case "ProctrackType":
			s.Proctrack = text
		case "JobSubmitPlugins":
			s.TimeRequired = slices.Contains(words(text), "require_timelimit")
		case "AccountingStorageType":
			s.Accounting = text != "" && text != "accounting_storage/none"
		}
	}
}

// readAccounts asks accounting. A site whose accounting cannot be asked counts as one without.
func (c *Client) readAccounts(ctx context.Context, site *Site) error {
	associations, err := c.run(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "associations",
		"user="+c.config.User, "format="+associationFields)
	var qos []byte
	if err == nil {
		qos, err = c.run(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "qos", "format="+qosFields)
	}
	if err != nil {
		c.config.Log.Warn("accounting of the site cannot be asked", "err", err)
		site.Accounting = false
		return ctx.Err()
	}
	site.Associations, site.QOS = parseAssociations(associations), parseQOS(qos)
	return nil
}
