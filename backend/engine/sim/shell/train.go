package shell

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// training is what train was told.
type training struct {
	epochs  int
	seconds time.Duration // that one epoch takes
	data    string        // a file with one example a line; "": made up
}

// The usual training run.
const (
	trainExamples = 50_000
	trainSteps    = 20 // of one epoch, after each of which a terminal shows more
	trainModel    = "model.safetensors"
)

// train pretends to fit a model: it loads the devices of the session, or its
// CPUs where it has none, tells of a loss that falls, and writes what looks like
// a model and its course.
func train(c *command) int {
	run, err := c.training()
	if err != nil {
		c.fail("%v", err)
		return c.usage("[--epochs N] [--seconds-per-epoch S] [DATA.csv]")
	}
	examples := trainExamples
	if run.data != "" {
		data, err := c.world.FS.ReadFile(c.path(run.data))
		if err != nil {
			return c.fail("%s: %s", run.data, errText(err))
		}
		examples = max(1, strings.Count(string(data), "\n")-1)
	}
	devices, _, err := c.world.granted(c.ctx)
	if err != nil {
		return c.fail("%v", err)
	}
	on, load := "CPU", float64(c.world.CPUs)*0.9
	if len(devices) > 0 {
		on, load = devices[0].Model, min(load, 1+0.5*float64(len(devices)))
	}
	if len(devices) > 1 {
		on = fmt.Sprintf("%d × %s", len(devices), on)
	}
	if !c.world.Load(c.process, load, c.world.Memory/5) {
		c.printf("Killed\n")
		return 137
	}
	defer c.world.compute(c.process, "train")()
	c.printf("A simulated training run on %s: %d examples, %d epochs. Ctrl-C stops it.\n", on, examples, run.epochs)
	return run.course(c, examples)
}

// training reads the arguments.
func (c *command) training() (t training, err error) {
	f, operands, err := c.parse("e:s:", map[string]byte{"epochs": 'e', "seconds-per-epoch": 's'})
	if err != nil {
		return t, err
	}
	epochs, errEpochs := f.number('e', 10)
	seconds, errSeconds := length(cmp.Or(f['s'], "3"))
	if errEpochs != nil || errSeconds != nil || epochs < 1 || len(operands) > 1 {
		return t, errors.New("invalid arguments")
	}
	return training{epochs: epochs, seconds: seconds, data: strings.Join(operands, "")}, nil
}

// course runs the epochs and writes what came of them.
func (t *training) course(c *command, examples int) int {
	rng := rand.New(rand.NewPCG(uint64(t.epochs), 0))
	metrics := "epoch,loss,accuracy\n"
	for epoch := 1; epoch <= t.epochs; epoch++ {
		for step := range trainSteps {
			if c.tty {
				c.printf("\repoch %d/%d  %3d %%", epoch, t.epochs, step*100/trainSteps)
			}
			if !c.pause(t.seconds / trainSteps) {
				c.printf("\nstopped in epoch %d of %d; %s was not written\n", epoch, t.epochs, trainModel)
				return 130
			}
		}
		loss, accuracy := reached(epoch, rng)
		if c.tty {
			c.printf("\r\x1b[K")
		}
		c.printf("epoch %d/%d  loss %.4f  accuracy %.4f  %.0f examples/s\n", epoch, t.epochs, loss, accuracy,
			float64(examples)/max(t.seconds.Seconds(), 0.001))
		metrics += fmt.Sprintf("%d,%.4f,%.4f\n", epoch, loss, accuracy)
	}
	for name, content := range map[string][]byte{trainModel: model(rng), "metrics.csv": []byte(metrics)} {
		if err := c.write(name, content); err != nil {
			return c.fail("%s: %s", name, errText(err))
		}
	}
	c.printf("wrote %s and metrics.csv\n", trainModel)
	return 0
}

// reached is how good the model is after an epoch.
func reached(epoch int, rng *rand.Rand) (loss, accuracy float64) {
	loss = 0.08 + 2.1*math.Exp(-0.35*float64(epoch)) + 0.02*(rng.Float64()-0.5)
	return loss, 1 - 0.42*loss/(1+loss)
}

// model is a small layer in the safetensors format: the length of a header, the
// header in JSON, and the numbers.
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

// write writes a file of the session.
func (c *command) write(name string, content []byte) error {
	file, err := c.world.FS.Open(c.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
