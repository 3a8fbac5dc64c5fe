package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// show calls a route and prints the answer. -o json and yaml print it as it is, with fields that this program does not
// know.
func show[In, Out any](ctx context.Context, c *caller, at route.Route[In, Out], table func(io.Writer, Out)) error {
	if c.program.output != outputTable {
		var raw json.RawMessage
		if err := at.Call(ctx, c, &raw); err != nil {
			return err
		}
		return c.program.printObject(raw)
	}
	answer, err := at.Ask(ctx, c)
	if err != nil {
		return err
	}
	return c.program.print(answer, func(w io.Writer) { table(w, answer) })
}

// asks makes a command print the answer of a route whose path has its arguments. on is the help of its flag --on;
// empty: it has no such flag.
func asks[In, Out any](p *program, cmd *cobra.Command, on string, at route.Route[In, Out],
	table func(io.Writer, Out)) *cobra.Command {
	var agent string
	if on != "" {
		p.onFlag(cmd, &agent, on)
	}
	return runs(cmd, p.about(func(ctx context.Context, c *caller, args []string) error {
		at := at.At(args...)
		if agent != "" {
			at = at.With("agent", agent)
		}
		return show(ctx, c, at, table)
	}))
}

// changes makes a command change what its first argument names, by its second argument, and print the answer.
func changes[In, Out any](p *program, cmd *cobra.Command, at route.Route[In, Out], to func(text string) In,
	table func(io.Writer, Out)) *cobra.Command {
	return runs(cmd, p.about(func(ctx context.Context, c *caller, args []string) error {
		return show(ctx, c, at.At(args[0]).Body(to(args[1])), table)
	}))
}

// about is [program.command] with the first argument replaced by an id, if the usage line calls it SESSION or PRESET.
func (p *program) about(work func(ctx context.Context, c *caller, args []string) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		return p.command(func(ctx context.Context, c *caller, args []string) error {
			var err error
			if strings.Contains(cmd.Use, " SESSION") {
				s, findErr := c.find(ctx, args[0])
				args[0], err = string(s.ID), findErr
			} else if strings.Contains(cmd.Use, " PRESET") {
				preset, findErr := c.findPreset(ctx, args[0])
				args[0], err = preset.ID, findErr
			}
			if err != nil {
				return err
			}
			return work(ctx, c, args)
		})(cmd, args)
	}
}

// print writes value in the format of -o, or calls table.
func (p *program) print(value any, table func(w io.Writer)) error {
	if p.output != outputTable {
		return p.printObject(value)
	}
	var out bytes.Buffer
	table(&out)
	_, err := p.Stdout.Write(out.Bytes())
	return err
}

// printObject writes an object or a list in the format of -o, which is not a table.
func (p *program) printObject(value any) error {
	switch p.output {
	case outputYAML:
		return writeYAML(p.Stdout, value)
	case outputName:
		return writeNames(p.Stdout, value)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := p.Stdout.Write(escapeJSON(out.Bytes()))
	return err
}

func writeYAML(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text, err := recipe.FromJSON(data)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// writeNames writes the names of the objects in a value, one a line.
func writeNames(w io.Writer, value any) error {
	var object any
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		return err
	}
	names := namesIn(object)
	if list, isList := object.([]any); len(names) == 0 && (!isList || len(list) > 0) {
		return usagef("-o name: nothing here has a name; use -o json or yaml")
	}
	for _, name := range names {
		fmt.Fprintln(w, inLine(name))
	}
	return nil
}

// namesIn returns the names of the objects in an answer. An object without a name, a reference or an id has the names
// of its parts.
func namesIn(value any) (names []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			names = append(names, namesIn(item)...)
		}
	case map[string]any:
		if refs, _ := value["refs"].([]any); len(refs) > 0 {
			return []string{fmt.Sprint(refs[0])}
		}
		for _, key := range []string{"name", "id", "uuid", "url"} {
			if name, _ := value[key].(string); name != "" {
				return []string{name}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			names = append(names, namesIn(value[key])...)
		}
	}
	return names
}

// cells measures text in cells of a terminal: two for Hangul, kana, ideographs and emoji, one for letters that are wide
// only in old East Asian fonts.
var cells = runewidth.Condition{StrictEmojiNeutral: true}

// columns writes rows with aligned columns. The first row is the header. Columns whose header begins with a space are
// right-aligned.
func columns(w io.Writer, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	widths, fills := make([]int, len(rows[0])), make([]func(string, int) string, len(rows[0]))
	for i, title := range rows[0] {
		fills[i] = cells.FillRight
		if strings.HasPrefix(title, " ") {
			fills[i] = cells.FillLeft
		}
		rows[0][i] = strings.TrimPrefix(title, " ")
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = inLine(cell)
			widths[i] = max(widths[i], cells.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = fills[i](cell, widths[i])
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "   "), " "))
	}
}

// table writes a row for each item below a header, which has the names of the columns separated by commas.
func table[T any](w io.Writer, header string, items []T, row func(T) []string) {
	columns(w, append([][]string{strings.Split(header, ",")}, each(items, row)...))
}

// named joins the names of items.
func named[T any](items []T, name func(T) string) string {
	return strings.Join(each(items, name), ", ")
}

// each calls a function for each item and returns the results.
func each[T, Out any](items []T, call func(T) Out) []Out {
	all := make([]Out, len(items))
	for i, item := range items {
		all[i] = call(item)
	}
	return all
}

// fields writes alternating names and values, the values aligned. It omits empty values.
func fields(w io.Writer, pairs ...string) {
	width := 0
	for pair := range slices.Chunk(pairs, 2) {
		width = max(width, cells.StringWidth(pair[0]))
	}
	for pair := range slices.Chunk(pairs, 2) {
		if value := pair[1]; value != "" {
			value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", width+2))
			fmt.Fprintf(w, "%s  %s\n", cells.FillRight(pair[0], width), value)
		}
	}
}

// statusLine is one line of standard error that is overwritten. Without a terminal it is not shown.
type statusLine struct {
	w        io.Writer // for complete lines
	terminal bool
	text     string
}

func (p *program) newStatusLine() statusLine {
	if p.output != outputTable {
		return statusLine{w: io.Discard}
	}
	return statusLine{w: p.raw.err, terminal: isTerminal(p.raw.err)}
}

func (l *statusLine) show(text string) {
	if l.terminal && text != l.text {
		l.text = text
		fmt.Fprint(l.w, "\r\x1b[K"+text)
	}
}

func (l *statusLine) clear() {
	if l.text != "" {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
	l.text = ""
}

// size formats an amount of bytes in binary units: "1.5 GiB".
func size[N ~int64](n N) string {
	const step = 1024
	value, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < step {
			break
		}
		value, unit = value/step, next
	}
	digits := 1
	if value >= 100 || unit == "B" {
		digits = 0
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	return strings.TrimSuffix(text, ".0") + " " + unit
}

// span formats a length of time with its two largest units: "3m 12s".
func span(d time.Duration) string {
	d = max(d, 0)
	whole := func(unit time.Duration) int { return int(d / unit) }
	const day = 24 * time.Hour
	switch {
	case d > 0 && d < time.Millisecond:
		return "<1ms"
	case d > 0 && d < time.Second:
		return strconv.Itoa(int(d.Milliseconds())) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return strconv.Itoa(whole(time.Second)) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", whole(time.Minute), whole(time.Second)%60)
	case d < day:
		return fmt.Sprintf("%dh %dm", whole(time.Hour), whole(time.Minute)%60)
	}
	return fmt.Sprintf("%dd %dh", whole(day), whole(time.Hour)%24)
}

// moment formats a time in the local time zone, with its age.
func (p *program) moment(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.In(p.Now().Location()).Format(time.DateTime) + " (" + p.age(*at) + ")"
}

// instant formats a time to the millisecond, without the date if that is today's.
func (p *program) instant(at time.Time) string {
	now := p.Now()
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05.000")
	}
	return at.Format("2006-01-02 15:04:05.000")
}

// age formats how long ago a time was, or how far ahead it is.
func (p *program) age(at time.Time) string {
	if ago := p.Now().Sub(at); ago >= 0 {
		return span(ago) + " ago"
	}
	return "in " + span(at.Sub(p.Now()))
}

func percent[N ~int64](part, whole N) string {
	if whole <= 0 {
		return ""
	}
	return strconv.Itoa(int(math.Round(100*float64(part)/float64(whole)))) + " %"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// screens are the unfiltered standard streams, for the output of other programs only: logs, terminals, commands. All
// that Slipway itself prints goes to [Config.Stdout] and [Config.Stderr], which are [plainWriter]s here.
type screens struct{ out, err io.Writer }

// plainWriter removes control characters except line breaks and tabs, because names and messages may come from another
// machine.
type plainWriter struct {
	to io.Writer

	mu   sync.Mutex // guards rest
	rest []byte     // the beginning of an incomplete character
}

func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if at := len(text) - cut; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				end = at
			}
			break
		}
	}
	w.rest = bytes.Clone(text[end:])
	plain := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && session.Unprintable(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text[:end]), string(utf8.RuneError)))
	if _, err := io.WriteString(w.to, plain); err != nil {
		return 0, err
	}
	return len(p), nil
}

// longestCell limits the width of a column, in bytes.
const longestCell = 1000

// inLine makes one line of a text, for a row of a table.
func inLine(text string) string {
	text = strings.Join(strings.FieldsFunc(session.Printable(text), func(r rune) bool { return r == '\n' }), " ")
	if len(text) > longestCell {
		text = strings.ToValidUTF8(text[:longestCell], "") + "…"
	}
	return text
}

// escapeJSON replaces control characters by JSON escapes, which mean the same.
func escapeJSON(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		if r != '\n' && session.Unprintable(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.Bytes()
}
