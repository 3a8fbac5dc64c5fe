package shell

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const (
	trainExamples = 50_000
	trainSteps    = 20 // of one epoch, after each of which a terminal shows more
	trainModel    = "model.safetensors"
)

// train simulates training: it loads GPUs or CPUs, prints a falling loss, and writes a model and its metrics.
func train(c *command) int {
	epochs, errEpochs := c.number("epochs", 10)
	length, errLength := duration(cmp.Or(c.flags["seconds-per-epoch"], "3"))
	if errors.Join(errEpochs, errLength) != nil || epochs < 1 || len(c.operands) > 1 {
		return c.usage("[--epochs N] [--seconds-per-epoch S] [DATA.csv]")
	}
	examples := trainExamples
	for _, name := range c.operands {
		data, err := c.world.FS.ReadFile(c.path(name))
		if err != nil {
			return c.fail("%s: %s", name, errText(err))
		}
		examples = max(1, strings.Count(string(data), "\n")-1)
	}
	devices, _, err := c.world.granted(c.ctx)
	if err != nil {
		return c.fail("%v", err)
	}
	on, load := "CPU", float64(c.world.CPUs)*0.9
	if len(devices) > 0 {
		on, load = fmt.Sprintf("%d × %s", len(devices), devices[0].Model), min(load, 1+0.5*float64(len(devices)))
	}
	if !c.world.Load(c.process, load, c.world.Memory/5) {
		c.printf("Killed\n")
		return 137
	}
	defer c.world.compute(c.process)()
	c.printf("A simulated training run on %s: %d examples, %d epochs. Ctrl-C stops it.\n", on, examples, epochs)
	rng := rand.New(rand.NewPCG(uint64(epochs), 0))
	metrics := "epoch,loss,accuracy\n"
	for epoch := 1; epoch <= epochs; epoch++ {
		for step := range trainSteps {
			if c.tty {
				c.printf("\repoch %d/%d  %3d %%", epoch, epochs, step*100/trainSteps)
			}
			if !c.pause(length / trainSteps) {
				c.printf("\nstopped in epoch %d of %d; %s was not written\n", epoch, epochs, trainModel)
				return 130
			}
		}
		if c.tty {
			c.printf("\r\x1b[K")
		}
		loss := 0.08 + 2.1*math.Exp(-0.35*float64(epoch)) + 0.02*(rng.Float64()-0.5)
		accuracy := 1 - 0.42*loss/(1+loss)
		c.printf("epoch %d/%d  loss %.4f  accuracy %.4f  %.0f examples/s\n", epoch, epochs, loss, accuracy,
			float64(examples)/max(length.Seconds(), 0.001))
		metrics += fmt.Sprintf("%d,%.4f,%.4f\n", epoch, loss, accuracy)
	}
	for name, content := range map[string][]byte{trainModel: model(rng), "metrics.csv": []byte(metrics)} {
		if err := c.create(c.path(name), 0o644, bytes.NewReader(content)); err != nil {
			return c.fail("%s: %s", name, errText(err))
		}
	}
	c.printf("wrote %s and metrics.csv\n", trainModel)
	return 0
}

// model is a small layer in the safetensors format: length of the header, header in JSON, numbers.
func model(rng *rand.Rand) []byte {
	const rows, columns = 32, 16
	header := fmt.Sprintf(
		`{"__metadata__":{"made_by":"a simulated training run"},"layer.weight":{"dtype":"F32","shape":[%d,%d],`+
			`"data_offsets":[0,%d]}}`, rows, columns, rows*columns*4)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for range rows * columns {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64()/8)))
	}
	return data
}
