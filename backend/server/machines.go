package server

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

type machineRoutes struct {
	hub   *hub.Hub
	clock *pace.Clock
}

func (s machineRoutes) mount(m *mounts) {
	answer(m, route.Doctor, onAgent(s.hub.Doctor))
	answer(m, route.Machines, always(s.hub.Machines))
	answer(m, route.Directories, func(r *http.Request) (session.DirectoryListing, error) {
		return s.hub.ListDirectories(r.Context(), r.PathValue("agent"), r.FormValue("path"))
	})
	answer(m, route.Devices, onAgent(s.hub.Boards))
	answer(m, route.DeviceHistory, func(r *http.Request) ([]session.DevicePoint, error) {
		since, err := timeIn(r, "since", s.clock.Now().Add(-time.Hour))
		if err != nil {
			return nil, err
		}
		return s.hub.DeviceHistory(r.Context(), r.PathValue("agent"), gpu.UUID(r.PathValue("device")), since)
	})
	answer(m, route.Resources, always(s.hub.Resources))
	answer(m, route.Accounts, func(r *http.Request) (api.UsageReport, error) {
		_, report, err := s.accounts(r)
		return report, err
	})
	m.stream(route.AccountsCSV.Endpoint, s.accountsCSV)
	answer(m, route.ServiceAccounts, func(r *http.Request) (hub.ServiceReport, error) {
		_, report, err := s.serviceAccounts(r)
		return report, err
	})
	m.stream(route.ServiceAccountsCSV.Endpoint, s.serviceAccountsCSV)
	answer(m, route.Images, func(r *http.Request) ([]hub.Image, error) {
		return eachAs(func(i hub.Image) hub.Image { return hub.Image{Image: imageOut(i.Image), Agent: i.Agent} })(
			s.hub.Images(r.Context(), r.FormValue("agent")))
	})
	answer(m, route.Environments, func(r *http.Request) ([]hub.Environment, error) {
		return s.hub.Environments(r.Context()), nil
	})
	answer(m, route.EnvironmentFile, func(*http.Request) (api.EnvironmentFile, error) {
		path, err := s.hub.CatalogueFile()
		return api.EnvironmentFile{Path: path, Problem: problemOf(err)}, nil
	})
	take(m, route.ImageSend, func(_ *http.Request, req api.ImageSending) (api.Operation, error) {
		return s.hub.SendImage(req)
	})
	take(m, route.ImagePull, func(_ *http.Request, req api.ImagePull) (api.Operation, error) {
		return s.hub.PullImage(req.Agent, req.Image)
	})
	take(m, route.ImageRemove, func(_ *http.Request, req api.ImageRemoval) (api.Operation, error) {
		return s.hub.RemoveImages(req.Agent, req.Images)
	})
	answer(m, route.ImageDisk, s.imageDisk)
	take(m, route.Commit, func(r *http.Request, req api.Commit) (api.Operation, error) {
		return s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name)
	})
}

const (
	usualSpan = 30 * 24 * time.Hour // the span of a report whose beginning is not given
	// longestHourly limits the rows of a report by the hour.
	longestHourly = 93 * 24 * time.Hour
)

var buckets = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}

// accountsIn parses the query of a usage report.
func accountsIn(r *http.Request, now time.Time) (hub.AccountQuery, error) {
	query := hub.AccountQuery{By: hub.By(r.FormValue("by")), Label: r.FormValue("label"), Agent: r.FormValue("agent")}
	var err error
	if query.AccountSpan, err = spanIn(r, now); err != nil {
		return query, err
	}
	switch query.By {
	case hub.ByNothing, hub.BySession, hub.ByLabel, hub.ByOwner, hub.ByDevice:
	case hub.ByDay:
		if query.Bucket == time.Hour {
			return query, badQuery("bucket", "Rows by the day cannot be rows by the hour.", "Leave bucket or by out.")
		}
		query.Bucket = 24 * time.Hour
	default:
		return query, badQuery("by", fmt.Sprintf("%q is nothing to sum up by.", clip(string(query.By))),
			"Use session, day, label, owner or device, or omit it.")
	}
	return query, nil
}

// spanIn parses the part of a query that says which time accounts are of.
func spanIn(r *http.Request, now time.Time) (span session.AccountSpan, err error) {
	if span.To, err = dayIn(r, "to", now, 1); err != nil {
		return span, err
	}
	if span.From, err = dayIn(r, "from", span.To.Add(-usualSpan), 0); err != nil {
		return span, err
	}
	bucket := r.FormValue("bucket")
	span.Bucket = buckets[bucket]
	switch {
	case bucket != "" && span.Bucket == 0:
		return span, badQuery("bucket", fmt.Sprintf("%q is not a length of a bucket.", clip(bucket)),
			"Use hour or day, or omit it.")
	case !span.From.Before(span.To):
		return span, badQuery("from", "The span ends before it begins.", "Choose an earlier from or a later to.")
	case span.Bucket == time.Hour && span.To.Sub(span.From) > longestHourly:
		return span, badQuery("bucket", "That is too long a span for rows by the hour.",
			"Choose at most 93 days, or rows by the day.")
	}
	return span, nil
}

// dayIn parses a query parameter that is a time or a day. It adds more days to a day, to include the last day of a
// span.
func dayIn(r *http.Request, name string, usual time.Time, more int) (time.Time, error) {
	return queryIn(r, name, usual, func(text string) (time.Time, error) {
		if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
			return day.AddDate(0, 0, more), nil
		}
		return time.Parse(time.RFC3339, text)
	}, "is neither a day nor a time", "Write for example 2031-05-01 or 2031-05-01T12:00:00Z.")
}

func (s machineRoutes) accounts(r *http.Request) (query hub.AccountQuery, report api.UsageReport, err error) {
	if query, err = accountsIn(r, s.clock.Now()); err == nil {
		report, err = s.hub.Accounts(r.Context(), query)
	}
	return query, report, err
}

var accountColumns = []string{"start", "kind", "session", "name", "owner", "label", "agent", "device", "device_name",
	"cpu_hours", "alloc_cpu_hours", "alloc_gpu_hours", "busy_gpu_hours", "vram_gib_hours", "vram_peak_bytes",
	"energy_dynamic_kwh", "energy_idle_kwh", "covered_ms", "estimated_ms", "gap_ms"}

func (s machineRoutes) accountsCSV(w http.ResponseWriter, r *http.Request) error {
	query, report, err := s.accounts(r)
	if err != nil {
		return err
	}
	writeCSV(w, "slipway-usage-", query.AccountSpan, accountColumns,
		each(report.Rows, func(a hub.Account) []string { return accountCells(a, query.Bucket) }))
	return nil
}

// writeCSV answers with a table of accounts, as a file whose name begins with name.
func writeCSV(w http.ResponseWriter, name string, span session.AccountSpan, columns []string, rows [][]string) {
	header := w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	first, last := span.From.Format(time.DateOnly), span.To.Add(-time.Nanosecond).Format(time.DateOnly)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+first+"-"+last+".csv"))
	out := csv.NewWriter(w)
	_ = out.Write(columns)
	_ = out.WriteAll(rows) // a client that left needs nothing
}

// startCell is the start of a bucket: a day for days.
func startCell(start time.Time, bucket time.Duration) string {
	if bucket == 24*time.Hour {
		return start.Format(time.DateOnly)
	}
	return start.Format(time.RFC3339)
}

const perKWh = 3.6e9 // millijoules

func hoursCell(ms int64) string { return decimal(float64(ms) / float64(time.Hour/time.Millisecond)) }

func accountCells(a hub.Account, bucket time.Duration) []string {
	return []string{startCell(a.Start, bucket), a.Kind, string(a.Session), plainCell(a.Name), plainCell(a.Owner),
		plainCell(a.Label), plainCell(a.Agent), string(a.Device), plainCell(a.DeviceName),
		hoursCell(a.CPUMs), hoursCell(a.AllocCPUMs), hoursCell(a.AllocGPUMs), hoursCell(a.BusyGPUMs),
		decimal(float64(a.VRAMMiBMs) / float64(gpu.GiB/gpu.MiB) / float64(time.Hour/time.Millisecond)),
		strconv.FormatInt(int64(a.VRAMPeak), 10),
		decimal(float64(a.EnergyDynamic) / perKWh), decimal(float64(a.EnergyIdle) / perKWh),
		strconv.FormatInt(a.CoveredMs, 10), strconv.FormatInt(a.EstimatedMs, 10), strconv.FormatInt(a.GapMs, 10)}
}

// decimal formats a number with up to six digits after the point.
func decimal(value float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(value, 'f', 6, 64), "0"), ".")
}

// plainCell keeps a spreadsheet from reading a text as a formula.
func plainCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// imageOut removes the owners of an image and of the sessions that use it.
func imageOut(i session.Image) session.Image {
	i.Owners, i.UsedBy = nil, slices.Clone(i.UsedBy)
	for at := range i.UsedBy {
		i.UsedBy[at].Owner = ""
	}
	return i
}

func (s machineRoutes) imageDisk(r *http.Request) (api.ImageDisk, error) {
	disk, agent, err := s.hub.ImageDisk(r.Context(), r.URL.Query().Get("agent"))
	disk.Images = each(disk.Images, func(room session.ImageRoom) session.ImageRoom {
		room.Image = imageOut(room.Image)
		return room
	})
	return api.ImageDisk{ImageDisk: disk, Agent: agent}, err
}
