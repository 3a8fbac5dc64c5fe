package demo

import (
	"fmt"

	"slipway/backend/engine/sim"
)

// recipes are what the person has launched before, as files: with their images by
// digest, so that they bring back just what ran then.
func recipes() []File {
	header := "# A recipe of Slipway. Run it with: slipway run -f FILE\n"
	return []File{
		{"explore.slipway.yaml", fmt.Appendf(nil, `%s# The notebook of the churn project, on half a GPU.
name: explore
type: interactive
image: %s
resources:
  cpu: 4
  memory: 12g
mounts:
  - folder: churn
agent: workstation
accelerator: "0.5"
label: churn
`, header, sim.Pinned(imageNotebook))},
		{"features.slipway.yaml", fmt.Appendf(nil, `%s# Ten parts of the table, without a GPU.
name: features
type: batch
image: %s
command: |
  for part in $(seq 1 10); do
    echo "part $part/10  $((part * %d)) rows"
    sleep 6
  done
  echo "features.parquet written"
timeout: 10m
resources:
  cpu: 2
  memory: 4g
label: churn
`, header, sim.Pinned(imagePython), rowsOfPart)},
	}
}
