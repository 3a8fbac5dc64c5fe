package hub

// keyring remembers to which agent a launch key went, for the newest ones. It
// is guarded by shared.mu.
type keyring struct {
	turns map[string]*turn
	order []string
}

// turn is the choice of an agent for one key. Its member may be read once
// decided is closed; nil: none was found, and the next request chooses anew.
type turn struct {
	decided chan struct{}
	member  *member
}

const keysKept = 512

// claim returns the turn of a key, and whether it is the caller's to decide.
func (k *keyring) claim(key string) (t *turn, first bool) {
	if t, ok := k.turns[key]; ok {
		return t, false
	}
	if k.turns == nil {
		k.turns = map[string]*turn{}
	}
	if len(k.order) >= keysKept {
		delete(k.turns, k.order[0])
		k.order = k.order[1:]
	}
	t = &turn{decided: make(chan struct{})}
	k.turns[key] = t
	k.order = append(k.order, key)
	return t, true
}

// settle decides a turn. A key for which there is no agent is forgotten.
func (k *keyring) settle(key string, t *turn, m *member) {
	t.member = m
	close(t.decided)
	if m == nil && k.turns[key] == t {
		k.drop(key)
	}
}

func (k *keyring) drop(key string) {
	delete(k.turns, key)
	for i, other := range k.order {
		if other == key {
			k.order = append(k.order[:i:i], k.order[i+1:]...)
			return
		}
	}
}

// forget drops the keys of an agent that was removed.
func (k *keyring) forget(m *member) {
	for key, t := range k.turns {
		select {
		case <-t.decided:
			if t.member == m {
				k.drop(key)
			}
		default:
		}
	}
}
