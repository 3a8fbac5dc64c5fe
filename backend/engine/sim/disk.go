package sim

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// MakeDisk makes the disk of a simulated machine in dir, unless there is one: a home, two datasets and room for
// results. The same seed gives the same files.
func MakeDisk(dir, owner string, seed uint64) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made := dir + ".new" // what a crash leaves is made again
	err := errors.Join(os.RemoveAll(made), os.MkdirAll(made, 0o700))
	if err != nil {
		return err
	}
	home := path.Join("home", owner)
	for _, d := range []string{"etc", "mnt", "opt", "srv", "tmp", "usr/local", "var/lib", "scratch/checkpoints",
		path.Join("scratch", owner), path.Join(home, "results")} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(made, filepath.FromSlash(d)), 0o755))
	}
	for name, content := range diskFiles(home, rand.New(rand.NewPCG(seed, 0))) {
		at := filepath.Join(made, filepath.FromSlash(name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755),
			os.WriteFile(at, content, 0o644)) //nolint:gosec // as on a shared disk
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return os.Rename(made, dir)
}

func diskFiles(home string, dice *rand.Rand) map[string][]byte {
	files := map[string][]byte{
		"etc/os-release":                   []byte("PRETTY_NAME=\"Slipway simulated machine\"\nID=slipway-sim\n"),
		home + "/.bashrc":                  []byte("alias ll='ls -l'\n"),
		home + "/projects/vision/train.py": []byte(trainingScript),
		home + "/projects/vision/config.yaml": []byte("data: /data/imagenet-mini\nepochs: 40\nbatch_size: 256\n" +
			"learning_rate: 0.1\n"),
		"data/imagenet-mini/README.md": []byte("# imagenet-mini\n\nThree classes of 16 × 16 pixels, for trying out a " +
			"pipeline.\n"),
		"data/wikitext-mini/README.md": []byte("# wikitext-mini\n\nMade-up sentences, one to a line.\n"),
		"data/wikitext-mini/train.txt": sentences(dice, 400),
		"data/wikitext-mini/valid.txt": sentences(dice, 40),
	}
	labels := "file,label\n"
	for _, class := range []string{"harbour", "lighthouse", "sailboat"} {
		for i := range 8 {
			split := "train"
			if i > 5 {
				split = "valid"
			}
			name := fmt.Sprintf("%s/%s/%04d.png", split, class, i)
			files["data/imagenet-mini/"+name] = picture(dice)
			labels += name + "," + class + "\n"
		}
	}
	files["data/imagenet-mini/labels.csv"] = []byte(labels)
	metrics := "epoch,loss,accuracy\n"
	for epoch := 1; epoch <= 12; epoch++ {
		metrics += fmt.Sprintf("%d,%.4f,%.4f\n", epoch, 2.3/float64(epoch)+dice.Float64()/20,
			0.9-0.6/float64(epoch)+dice.Float64()/50)
	}
	files["scratch/checkpoints/resnet18/metrics.csv"] = []byte(metrics)
	return files
}

const trainingScript = `import csv, pathlib

data = pathlib.Path("/home/work/imagenet-mini")
with open(data / "labels.csv") as file:
    rows = list(csv.DictReader(file))
print(len(rows), "pictures of", len({row["label"] for row in rows}), "classes")
`

func sentences(dice *rand.Rand, lines int) []byte {
	subjects := strings.Fields("harbour ship captain crew lighthouse tide storm cargo engineer model")
	verbs := strings.Fields("reaches leaves follows trains measures signals carries repairs")
	var text bytes.Buffer
	for range lines {
		one := func(words []string) string { return words[dice.IntN(len(words))] }
		fmt.Fprintf(&text, "The %s %s the %s.\n", one(subjects), one(verbs), one(subjects))
	}
	return text.Bytes()
}

// picture returns a small PNG: water and sky of random colors.
func picture(dice *rand.Rand) []byte {
	const size = 16
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	horizon, tint := 5+dice.IntN(6), uint8(dice.IntN(80)) //nolint:gosec // below 80
	for y := range size {
		for x := range size {
			c := color.RGBA{R: 120 + tint, G: 170 + tint/2, B: 230, A: 255}
			if y > horizon {
				c = color.RGBA{R: 20, G: 60 + tint, B: 110 + uint8(dice.IntN(40)), A: 255} //nolint:gosec // below 40
			}
			img.SetRGBA(x, y, c)
		}
	}
	var data bytes.Buffer
	_ = png.Encode(&data, img) // to memory
	return data.Bytes()
}
