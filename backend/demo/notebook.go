package demo

import (
	"encoding/json"
	"strings"
)

// notebook is a document of Jupyter's format 4. It needs nothing but Python
// itself, so that it runs wherever it is opened.
func notebook() []byte {
	cells := make([]any, 0, len(chapters))
	for _, chapter := range chapters {
		cell := map[string]any{"cell_type": "code", "execution_count": nil, "metadata": map[string]any{},
			"outputs": []any{}, "source": strings.SplitAfter(strings.TrimSpace(chapter), "\n")}
		if text, ok := strings.CutPrefix(strings.TrimSpace(chapter), "%% "); ok {
			cell = map[string]any{"cell_type": "markdown", "metadata": map[string]any{},
				"source": strings.SplitAfter(text, "\n")}
		}
		cells = append(cells, cell)
	}
	document := map[string]any{
		"nbformat": 4, "nbformat_minor": 4, "cells": cells,
		"metadata": map[string]any{"kernelspec": map[string]any{"name": "python3", "display_name": "Python 3",
			"language": "python"}, "language_info": map[string]any{"name": "python"}},
	}
	data, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		panic(err) // it is made of texts and numbers only
	}
	return append(data, '\n')
}

// chapters are the cells of the notebook; texts begin with %%.
var chapters = []string{`
%% # Who leaves?

*customers.csv* lies beside this notebook: 400 customers, of whom some have left. A small model learns who will be
next, and *at-risk.csv* names them.
`, `
import csv

with open("customers.csv") as file:
    rows = list(csv.DictReader(file))

print(len(rows), "customers,", sum(row["churned"] == "1" for row in rows), "have left")
rows[0]
`, `
from IPython.display import HTML

def rate(some):
    return sum(row["churned"] == "1" for row in some) / len(some)

lines = []
for plan in ("basic", "plus", "pro"):
    of_plan = [row for row in rows if row["plan"] == plan]
    lines.append(f"<tr><td>{plan}</td><td>{len(of_plan)}</td><td>{rate(of_plan):.1%}</td></tr>")
HTML("<table><tr><th>Plan</th><th>Customers</th><th>Left</th></tr>" + "".join(lines) + "</table>")
`, `
%% ## A model that learns

A logistic regression in plain Python: 300 customers to learn from, 100 to be tested on.
`, `
import math, random, time

columns = ("months", "monthly_usd", "calls")
means = {c: sum(float(row[c]) for row in rows) / len(rows) for c in columns}
spans = {c: max(float(row[c]) for row in rows) - min(float(row[c]) for row in rows) for c in columns}

def features(row):
    return [1.0] + [(float(row[c]) - means[c]) / spans[c] for c in columns]

def chance(row):
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, features(row)))))

random.Random(1).shuffle(rows)
learned, tested = rows[:300], rows[300:]
samples = [(features(row), int(row["churned"])) for row in learned]
weights, losses = [0.0] * (len(columns) + 1), []

begun = time.time()
for epoch in range(1, 301):
    loss, slope = 0.0, [0.0] * len(weights)
    for x, y in samples:
        p = 1 / (1 + math.exp(-sum(w * v for w, v in zip(weights, x))))
        loss -= math.log(p if y else 1 - p) / len(samples)
        for i, v in enumerate(x):
            slope[i] += (p - y) * v / len(samples)
    weights = [w - 4 * s for w, s in zip(weights, slope)]
    losses.append(loss)
    if epoch % 60 == 0:
        print(f"epoch {epoch:3}  loss {loss:.4f}")
print(f"{time.time() - begun:.1f} s")
`, `
from IPython.display import SVG

low, high = min(losses), max(losses)
points = " ".join(f"{50 + 500 * i / len(losses):.1f},{20 + 180 * (high - loss) / (high - low):.1f}"
                  for i, loss in enumerate(losses))
text = "font-family='sans-serif' font-size='12' fill='#7a8a92'"
SVG(f"""<svg xmlns='http://www.w3.org/2000/svg' width='580' height='240'>
<path d='M50 10V210H560' fill='none' stroke='#9aa8af'/>
<polyline points='{points}' fill='none' stroke='#2a94bd' stroke-width='2.5'/>
<text x='4' y='26' {text}>{high:.3f}</text><text x='4' y='204' {text}>{low:.3f}</text>
<text x='50' y='230' {text}>1</text><text x='530' y='230' {text}>{len(losses)}</text>
<text x='250' y='230' {text}>loss by epoch</text></svg>""")
`, `
right = sum((chance(row) > 0.5) == (row["churned"] == "1") for row in tested)
pairs = [(chance(a), chance(b)) for a in tested if a["churned"] == "1" for b in tested if b["churned"] == "0"]
auc = sum(a > b for a, b in pairs) / len(pairs)

at_risk = sorted((row for row in rows if row["churned"] == "0"), key=chance, reverse=True)[:20]
with open("at-risk.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["customer", "plan", "chance"])
    writer.writerows([row["customer"], row["plan"], f"{chance(row):.3f}"] for row in at_risk)

print(f"accuracy {right / len(tested):.0%}, AUC {auc:.2f}, {len(at_risk)} customers written")
`, `
%% *at-risk.csv* is now in the session's files, and a terminal of the session shows it: ` + "`head churn/at-risk.csv`" +
	`.
`}
