package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"slipway/backend/session"
)

func (s sessionRoutes) history(r *http.Request, agent session.Agent, id session.ID) ([]session.Phase, error) {
	query, err := historyIn(r)
	if err != nil {
		return nil, err
	}
	return as(query.choose)(agent.History(r.Context(), id))
}

// historyQuery selects phases. An empty list selects all.
type historyQuery struct {
	ids, phases, results, from, to []string
	code, text                     string // in lower case
	updated, newest                bool   // sort by update, newest first
}

func historyIn(r *http.Request) (historyQuery, error) {
	q := historyQuery{ids: listIn(r, "id"), code: strings.ToLower(r.FormValue("code")),
		text: strings.ToLower(r.FormValue("text"))}
	statuses := []session.Status{session.Pending, session.Scheduled, session.Preparing, session.Pulling,
		session.Prepared, session.Creating, session.Running, session.Terminating, session.Terminated,
		session.Cancelled, session.Failed}
	phases := []session.PhaseName{session.PhaseSchedule, session.PhasePrepare, session.PhaseStart,
		session.PhaseTerminate}
	outcomes := []session.Outcome{session.OutcomeRunning, session.OutcomeSuccess, session.OutcomeFailure,
		session.OutcomeStale, session.OutcomeNeedRetry, session.OutcomeExpired, session.OutcomeGiveUp,
		session.OutcomeSkipped}
	if err := cmp.Or(namesIn(r, "phase", phases, &q.phases), namesIn(r, "result", outcomes, &q.results),
		namesIn(r, "from", statuses, &q.from), namesIn(r, "to", statuses, &q.to)); err != nil {
		return q, err
	}
	sorting := r.FormValue("sort")
	by, newest := strings.CutPrefix(sorting, "-")
	if by != "" && by != "created" && by != "updated" || sorting == "-" {
		return q, badQuery("sort", fmt.Sprintf("%q is not a sort key.", clip(sorting)),
			"Write created, updated, -created or -updated.")
	}
	q.updated, q.newest = by == "updated", newest
	return q, nil
}

// listIn parses a query parameter with values separated by commas.
func listIn(r *http.Request, name string) []string {
	return strings.FieldsFunc(r.FormValue(name), func(c rune) bool { return c == ',' || c == ' ' })
}

func namesIn[N ~string](r *http.Request, name string, known []N, into *[]string) error {
	for _, text := range listIn(r, name) {
		i := slices.IndexFunc(known, func(one N) bool { return strings.EqualFold(string(one), text) })
		if i < 0 {
			all := each(known, func(one N) string { return string(one) })
			return badQuery(name, fmt.Sprintf("Unknown value %s=%s.", name, clip(text)),
				"Known values: "+strings.Join(all, ", ")+".")
		}
		*into = append(*into, string(known[i]))
	}
	return nil
}

// choose returns the selected phases in order. Those of the same time keep the order of their creation.
func (q historyQuery) choose(phases []session.Phase) []session.Phase {
	chosen := slices.DeleteFunc(slices.Clone(phases), func(p session.Phase) bool { return !q.wants(p) })
	slices.SortStableFunc(chosen, func(a, b session.Phase) int {
		order := a.CreatedAt.Compare(b.CreatedAt)
		if q.updated {
			order = cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), order)
		}
		if q.newest {
			return -order
		}
		return order
	})
	return chosen
}

func (q historyQuery) wants(p session.Phase) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return among(q.ids, p.ID) && among(q.phases, string(p.Phase)) && among(q.results, string(p.Result)) &&
		among(q.from, string(p.From)) && among(q.to, string(p.To)) && q.hasTexts(p)
}

func (q historyQuery) hasTexts(p session.Phase) bool {
	has := func(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }
	hasCode, hasText := has(string(p.Code), q.code), has(p.Message, q.text)
	for _, s := range p.Steps {
		hasCode = hasCode || has(string(s.Code), q.code)
		hasText = hasText || has(s.Message, q.text) || has(s.Step, q.text)
	}
	return hasCode && hasText
}
