package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
)

// Entry is what is stored of an agent on another machine. It holds no secret: keys and passwords stay with the
// [Connector].
type Entry struct {
	ID          string    `json:"id"` // never changes
	Name        string    `json:"name"`
	Address     string    `json:"address"`
	Group       string    `json:"group"`
	Fingerprint string    `json:"fingerprint,omitempty"` // of the agent's key, pinned
	Dir         string    `json:"dir,omitempty"`         // of the agent's files there, if it was installed by ssh
	Owner       string    `json:"owner,omitempty"`       // of our sessions there; empty: the hub's own
	AddedAt     time.Time `json:"addedAt"`
}

// DefaultGroup is the resource group of an agent if none was chosen.
const DefaultGroup = "default"

const (
	agentsKey  = "hub.agents"
	groupsKey  = "hub.groups" // of agents that are not in the directory
	agentsMost = 64
	nameMost   = 32
)

// wordRule matches names of agents and resource groups, which are used in paths, on command lines and in tables.
var wordRule = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,62}[a-zA-Z0-9])?$`)

// Agents returns every agent, the local one first.
func (st *state) Agents() []Agent {
	return locked(st.shared, func() []Agent { return each(st.members, st.agentView) })
}

// Agent returns one agent. It fails with agent_find_not-found.
func (st *state) Agent(name string) (Agent, error) {
	m, err := st.member(name)
	if err != nil {
		return Agent{}, err
	}
	return locked(st.shared, func() Agent { return st.agentView(m) }), nil
}

// AgentRequest adds an agent.
type AgentRequest struct {
	// ssh://user@host:port, an ssh host such as lab, slurm://user@host:port for a login node of Slurm,
	// slipway://host:port or wss://host:port/path
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`  // empty: made from the host
	Group   string `json:"group,omitempty"` // empty: default
	// absolute path of Slipway's folder there, only by ssh; empty: the account's default
	Dir string `json:"dir,omitempty"`
}

// directory adds, changes and removes agents on other machines.
type directory struct {
	*state
	operations *operations
	person     *person
	follower   *follower
	connector  Connector // nil: the hub reaches no other machines
}

// AddAgent starts to add an agent. It fails with agent_call_invalid, agent_call_conflict or agent_call_unavailable.
func (d *directory) AddAgent(req AgentRequest) (Operation, error) {
	entry, err := d.newEntry(req)
	if err != nil {
		return Operation{}, err
	}
	return d.operations.start(AgentAdd, entry.Address, func(ctx context.Context, work *Work) error {
		added, err := d.connector.Add(ctx, work, entry,
			func(instance string) error { return d.refuseDuplicate(nil, instance) })
		if err != nil {
			return err
		}
		m, err := d.join(added)
		if err != nil {
			return err
		}
		if err := m.remote.Reconnect(ctx, work); err != nil {
			e := session.AsError(err, session.CodeUnreachable)
			work.Tell(Step{Name: "connect", Title: "Connect", State: StepWarning, Detail: e.Message, Remedy: e.Hint})
		} else if err := d.checkDuplicate(ctx, m); err != nil {
			return errors.Join(err, d.part(m))
		}
		work.Concerns(m.Name())
		return nil
	})
}

// ProbeAddress starts to probe a machine that has no known agent, and the folder dir there, as in an [AgentRequest].
func (d *directory) ProbeAddress(address, dir string) (Operation, error) {
	parsed, err := d.reachable(address, dir)
	if err != nil {
		return Operation{}, err
	}
	entry := Entry{Address: parsed.String(), Dir: dir}
	return d.operations.start(AgentProbe, entry.Address, func(ctx context.Context, work *Work) error {
		return d.connector.Probe(ctx, work, entry)
	})
}

func (d *directory) reachable(address, dir string) (Address, error) {
	parsed, err := ParseAddress(address)
	switch {
	case err != nil:
		return parsed, err
	case d.connector == nil:
		return parsed, session.NewError(session.CodeAgentUnavailable, "This Slipway reaches no other machines.",
			"Use slipway serve or the desktop application.")
	}
	return parsed, checkDir(parsed, dir)
}

func (d *directory) newEntry(req AgentRequest) (Entry, error) {
	parsed, err := d.reachable(req.Address, req.Dir)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{ID: newID(), Address: parsed.String(), Group: cmp.Or(req.Group, DefaultGroup), Name: req.Name,
		Dir: req.Dir, AddedAt: d.now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if entry.Name == "" {
		entry.Name = d.freeName(parsed.Host)
	}
	return entry, d.mayJoin(entry)
}

// checkDir checks a folder on another machine, so it allows only what every machine understands alike.
func checkDir(address Address, dir string) error {
	var message string
	switch {
	case dir == "":
		return nil
	case address.Scheme != SchemeSSH:
		message = "A folder is chosen where Slipway is installed by ssh; an agent that listens has its own."
	case !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || len(dir) > 1000 ||
		strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r > '~' }):
		message = fmt.Sprintf("%q is not a folder for Slipway's files.", session.Clip(dir))
	default:
		return nil
	}
	const hint = "Write an absolute path of printable ASCII such as /var/tmp/slipway-ada."
	return wrongField(session.CodeAgentInvalid, "dir", session.KindInvalid, message, hint)
}

// freeName returns a free name made from a host, with a number if necessary. The caller holds mu.
func (d *directory) freeName(host string) string {
	name := host
	if strings.ContainsAny(host[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		name, _, _ = strings.Cut(host, ".")
	}
	name = strings.NewReplacer(":", "-", "_", "-").Replace(strings.ToLower(name))
	name = cmp.Or(strings.Trim(name[:min(len(name), nameMost-3)], "-."), "agent")
	free := name
	for n := 2; slices.ContainsFunc(d.members, func(m *member) bool { return m.Name() == free }); n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

// mayJoin checks whether an entry can be added. The caller holds mu.
func (d *directory) mayJoin(entry Entry) error {
	if err := cmp.Or(checkWord("name", entry.Name), checkWord("group", entry.Group)); err != nil {
		return err
	}
	if len(d.members) >= agentsMost {
		return session.NewError(session.CodeAgentConflict, fmt.Sprintf("%d agents are already known.", len(d.members)),
			"Remove one first.")
	}
	for _, m := range d.members {
		switch {
		case m.Name() == entry.Name:
			return taken(entry.Name)
		case m.entry.Address == entry.Address:
			return wrongField(session.CodeAgentConflict, "address", session.KindDuplicate,
				fmt.Sprintf("%s is already known as %s.", entry.Address, m.Name()),
				"Use that one, or remove it first.")
		case entry.Fingerprint != "" && m.entry.Fingerprint == entry.Fingerprint:
			return session.NewError(session.CodeAgentConflict,
				fmt.Sprintf("The agent at %s is already known as %s.", entry.Address, m.Name()),
				"Use that one, or remove it first.")
		}
	}
	return nil
}

func taken(name string) error {
	message := fmt.Sprintf("An agent named %q already exists.", name)
	return wrongField(session.CodeAgentConflict, "name", session.KindDuplicate, message, "Choose another name.")
}

func checkWord(field, text string) error {
	if len(text) <= nameMost && wordRule.MatchString(text) {
		return nil
	}
	message := fmt.Sprintf(
		"A %s has 1 to %d letters, digits, dots, dashes and underscores, and begins and ends with a letter or digit.",
		field, nameMost)
	return wrongField(session.CodeAgentInvalid, field, session.KindInvalid, message, "lab-2 is one.")
}

// join adds an agent to the directory and starts to follow it.
func (d *directory) join(entry Entry) (*member, error) {
	d.saving.Lock()
	defer d.saving.Unlock()
	d.mu.Lock()
	err := d.mayJoin(entry)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	m, err := d.open(entry)
	if err == nil {
		err = d.saveDirectory(func(entries []Entry) []Entry { return append(entries, entry) })
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members = append(slices.Clone(d.members), m)
	d.stream.forget() // a snapshot includes its machine
	d.follower.begin(m)
	return m, nil
}

// open returns a member for an entry, which is not followed yet.
func (d *directory) open(entry Entry) (*member, error) {
	m := newMember(entry.Name, false, session.Agent{})
	m.entry = entry
	var err error
	m.remote, err = d.connector.Open(entry, Listed{Name: m.Name,
		Pin:      func(fingerprint string) error { return d.pin(m, fingerprint) },
		Distrust: func(err error) { d.distrust(m, err) }})
	if err != nil {
		return nil, err
	}
	m.Agent = underName(m.remote.Agent(), m.Name)
	m.link, _ = m.remote.Link()
	return m, nil
}

// saveDirectory stores what change returns for the entries of the directory. The caller holds saving.
func (d *directory) saveDirectory(change func([]Entry) []Entry) error {
	entries := []Entry{}
	for _, m := range d.list() {
		if m.remote != nil {
			entries = append(entries, d.entryOf(m))
		}
	}
	return d.shelf.Save(agentsKey, change(entries))
}

// loadEntries opens the agents of the directory. An agent that cannot be opened is logged and stays on the shelf.
func (d *directory) loadEntries() {
	if d.connector == nil {
		return
	}
	for _, entry := range read[[]Entry](d.shared, agentsKey, "the directory of agents cannot be read") {
		m, err := d.open(entry)
		if err != nil {
			d.log.Error("an agent cannot be opened", "agent", entry.Name, "error", err)
			continue
		}
		d.follower.recall(m)
		d.members = append(d.members, m)
	}
}

func (d *directory) loadGroups() {
	groups := read[map[string]string](d.shared, groupsKey, "the resource groups cannot be read")
	for _, m := range d.members {
		m.entry.Group = cmp.Or(groups[m.Name()], m.entry.Group)
	}
}
