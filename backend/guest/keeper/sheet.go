package keeper

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// place puts what a notebook lacks into the cells that it belongs to. saved is when the file was last written. It
// returns the runs that it placed, and those that came while no page was connected and have no cell, or two.
func place(notebook fields, list runs, saved time.Time) (placed, homeless runs) {
	cells, _ := notebook["cells"].([]any)
	newest := map[int]*run{}
	for _, r := range list {
		at, found := cellOf(cells, r)
		switch {
		case found:
			if before := newest[at]; before != nil {
				before.settled = true // it was run again
			}
			newest[at] = r
		case r.missed && !r.settled && len(r.outputs)+r.left > 0:
			homeless = append(homeless, r)
		}
	}
	for at, r := range newest {
		if r.settled {
			continue
		}
		cell, outputs := cells[at].(fields), r.notebook()
		if before, _ := cell["outputs"].([]any); r.dropped && (countOf(cell) == "" || countOf(cell) == r.count) {
			outputs = slices.Concat(before, outputs) // the beginning of it
		}
		if !r.missed && saved.After(r.last) || same(cell["outputs"], outputs) && (!r.done || countOf(cell) == r.count) {
			r.settled = r.done
			continue
		}
		cell["outputs"] = outputs
		switch {
		case countOf(cell) == r.count:
		case !r.done:
			cell["execution_count"] = nil // it was that of an earlier run
		case r.count != "":
			cell["execution_count"] = r.count
		}
		placed = append(placed, r)
	}
	return placed, homeless
}

// cellOf returns the number of the cell that was run: the one with its source, and of several the one with its count.
func cellOf(cells []any, r *run) (at int, found bool) {
	alike, counted := []int{}, []int{}
	for i, c := range cells {
		cell, _ := c.(fields)
		if cell["cell_type"] != "code" || strings.TrimSpace(joined(cell["source"])) != strings.TrimSpace(r.code) {
			continue
		}
		alike = append(alike, i)
		if countOf(cell) == r.count {
			counted = append(counted, i)
		}
	}
	switch {
	case len(alike) == 1:
		return alike[0], true
	case len(counted) == 1:
		return counted[0], true
	}
	return 0, false
}

func countOf(cell fields) json.Number {
	count, _ := cell["execution_count"].(json.Number)
	return count
}

// joined is a text of a notebook, which is stored as one string or as its lines.
func joined(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		var all strings.Builder
		for _, line := range value {
			text, _ := line.(string)
			all.WriteString(text)
		}
		return all.String()
	}
	return ""
}

// same reports whether the outputs of a cell are those of a run.
func same(cell any, of []any) bool {
	list, _ := cell.([]any)
	if len(list) != len(of) {
		return false
	}
	for i := range list {
		if !reflect.DeepEqual(plain(list[i]), plain(of[i])) {
			return false
		}
	}
	return true
}

// plain is an output with every text as one string.
func plain(value any) any {
	object, isObject := value.(fields)
	if !isObject {
		if list, isList := value.([]any); isList && allText(list) {
			return joined(list)
		}
		return value
	}
	copied := fields{}
	for name, one := range object {
		copied[name] = plain(one)
	}
	return copied
}

func allText(list []any) bool {
	for _, one := range list {
		if _, isText := one.(string); !isText {
			return false
		}
	}
	return true
}

// recovered is a notebook of runs that have no cell.
func recovered(of string, list runs) fields {
	cells := []any{fields{"cell_type": "markdown", "metadata": fields{}, "source": fmt.Sprintf(
		"These cells of %s went on while no page was open. Since then they were changed, or there are several like "+
			"them, so their outputs are here.", of)}}
	for _, r := range list {
		var count any
		if r.count != "" {
			count = r.count
		}
		cells = append(cells, fields{"cell_type": "code", "metadata": fields{}, "execution_count": count,
			"source": r.code, "outputs": r.notebook()})
	}
	return fields{"cells": cells, "metadata": fields{}, "nbformat": 4, "nbformat_minor": 4}
}
