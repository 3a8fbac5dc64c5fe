package keeper

import (
	"net/url"
	"slices"
	"time"
)

const (
	maxRecent = 500 // messages of a kernel that are remembered
	maxID     = 128 // bytes of an id or a date of them
)

// recent are the newest messages of a kernel, by what a page knows them by.
type recent struct {
	ids    []string
	since  string // date of the first; empty: there were none before
	middle string // date of the one in the middle
}

func (r *recent) add(m message) {
	if len(m.id) > maxID || len(m.date) > maxID {
		return
	}
	if len(r.ids) == maxRecent {
		r.ids, r.since = r.ids[:copy(r.ids, r.ids[maxRecent/2:])], r.middle
	}
	if r.ids = append(r.ids, m.id); len(r.ids) == maxRecent/2+1 {
		r.middle = m.date
	}
}

// live answers a page with the runs that it lacks; see [link.LivePath]. Messages that are in them, and may come to the
// page later, are those in recent and those before since.
func (k *Keeper) live(query url.Values) fields {
	list := []any{}
	saved, _ := time.Parse(time.RFC3339, query.Get("saved")) // what it has in doubt is shown where it is not
	k.mu.Lock()
	one := k.kernels[query.Get("kernel")]
	k.mu.Unlock()
	if one == nil {
		return fields{"runs": list, "recent": list, "since": ""}
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, r := range one.runs {
		switch {
		case one.path != query.Get("path"):
		case slices.Contains(query["shown"], r.request):
			r.missed, r.doubtful = false, false // until it leaves again
		case (r.missed || r.doubtful && !(r.done && saved.After(r.last))) && !r.settled && !r.dropped &&
			r.client != query.Get("client"):
			list = append(list, r.live())
		}
	}
	return fields{"runs": list, "recent": slices.Clone(one.recent.ids), "since": one.recent.since}
}

// live is a run as a page shows it before what is still printed. Its outputs have what they can be updated by.
func (r *run) live() fields {
	outputs := r.notebook()
	for i, o := range r.outputs {
		shown := outputs[i].(fields)
		if o.stream != "" {
			shown["text"] = o.text.resumable()
		} else if o.display != "" {
			shown["transient"] = fields{"display_id": o.display}
		}
	}
	var count any
	if r.count != "" {
		count = r.count
	}
	return fields{"request": r.request, "code": r.code, "count": count, "outputs": outputs, "clearing": r.clearing,
		"done": r.done}
}
