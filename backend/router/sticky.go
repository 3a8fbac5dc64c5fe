package router

import (
	"container/list"
	"crypto/sha256"

	"slipway/backend/session"
)

// conversation identifies the requests of one conversation. The zero value is none.
type conversation [sha256.Size]byte

// mostSticky bounds the conversations that are remembered, about 150 bytes each.
const mostSticky = 4096

// sticky remembers which replica had each conversation, because its prefix is in the cache there. The least recently
// used one is forgotten first.
type sticky struct {
	order list.List // of home, the most recent first
	at    map[conversation]*list.Element
}

type home struct {
	key     conversation
	replica session.ID
}

// get returns the replica of a conversation, or "".
func (s *sticky) get(key conversation) session.ID {
	e := s.at[key]
	if e == nil {
		return ""
	}
	return e.Value.(home).replica
}

func (s *sticky) put(key conversation, replica session.ID) {
	if key == (conversation{}) {
		return
	}
	if e := s.at[key]; e != nil {
		e.Value = home{key, replica}
		s.order.MoveToFront(e)
		return
	}
	if s.at == nil {
		s.at = map[conversation]*list.Element{}
	}
	s.at[key] = s.order.PushFront(home{key, replica})
	if s.order.Len() > mostSticky {
		oldest := s.order.Remove(s.order.Back()).(home)
		delete(s.at, oldest.key)
	}
}
