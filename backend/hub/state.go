package hub

import "slipway/backend/session"

// state is what the agents have told: which of them there are, what they keep and
// how it is. Agents and their sessions go together, since one that comes or goes
// changes what is known of the other. Its methods ask no agent.
type state struct {
	*shared

	// mu guards these.
	members     []*member // replaced, never changed, when one comes or goes
	sessions    map[session.ID]*reported
	usage       map[session.ID]session.Usage
	homes       map[session.ID]*member       // which agent keeps a session
	folderHomes map[session.FolderID]*member // which agent keeps a folder, as far as it was asked for
	waiting     dependents
	keys        keyring
}

func newState(common *shared) *state {
	return &state{shared: common, sessions: map[session.ID]*reported{}, usage: map[session.ID]session.Usage{},
		homes: map[session.ID]*member{}, folderHomes: map[session.FolderID]*member{}, waiting: dependents{}}
}
