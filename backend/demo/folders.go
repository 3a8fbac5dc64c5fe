package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"strings"

	"slipway/backend/session"
)

// Folder is a data folder with files that are small and real: what reads them
// finds what their names promise.
type Folder struct {
	Name  string
	Files []File
}

// File is one file of a folder.
type File struct {
	Name    string
	Content []byte
}

// Folders are the person's folders on the workstation.
func Folders(o Options) []Folder {
	rng := rand.New(rand.NewPCG(o.Seed, 100))
	return []Folder{
		{Name: "churn", Files: []File{
			{"customers.csv", customers(rng)}, {"explore.ipynb", notebook()}, {"loss.png", lossCurve(rng)},
			{"model.safetensors", weights(rng)},
			{"README.md", []byte("# Churn\n\n`customers.csv` is what `explore.ipynb` reads; `train-churn` writes " +
				"`loss.png` and `model.safetensors`.\n")},
		}},
		{Name: "recipes", Files: recipes()},
		{Name: "results", Files: []File{{"2-layers/metrics.json", []byte("{\"accuracy\": 0.871, \"auc\": 0.923}\n")},
			{"4-layers/metrics.json", []byte("{\"accuracy\": 0.884, \"auc\": 0.931}\n")}}},
	}
}

// customers is a table of 400 people of whom some have left.
func customers(rng *rand.Rand) []byte {
	var b bytes.Buffer
	b.WriteString("customer,months,plan,monthly_usd,calls,churned\n")
	for i := range 400 {
		months, calls := 1+rng.IntN(72), rng.IntN(9)
		plan := rng.IntN(3)
		leaves := 0.1 + 0.08*float64(calls) - 0.006*float64(months)
		churned := 0
		if rng.Float64() < leaves {
			churned = 1
		}
		fmt.Fprintf(&b, "C%05d,%d,%s,%.2f,%d,%d\n", 10000+i, months, []string{"basic", "plus", "pro"}[plan],
			9+float64(plan)*14+rng.Float64()*3, calls, churned)
	}
	return b.Bytes()
}

// lossCurve is a picture of a training run.
func lossCurve(rng *rand.Rand) []byte {
	const width, height, margin = 480, 300, 24
	ink := color.Palette{color.White, color.Gray{Y: 0xd0}, color.RGBA{R: 0x0a, G: 0x6c, B: 0x8f, A: 0xff}}
	picture := image.NewPaletted(image.Rect(0, 0, width, height), ink)
	for x := margin; x < width-margin; x++ {
		picture.SetColorIndex(x, height-margin, 1)
	}
	for y := margin; y < height-margin; y++ {
		picture.SetColorIndex(margin, y, 1)
	}
	for x := margin; x < width-margin; x++ {
		run := float64(x-margin) / (width - 2*margin)
		loss := 0.12 + 0.88*math.Exp(-5*run) + 0.03*(rng.Float64()-0.5)
		y := height - margin - int(loss*(height-2*margin))
		for dy := range 3 {
			picture.SetColorIndex(x, min(max(y+dy, 0), height-1), 2)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		panic(err) // nothing can fail in memory
	}
	return b.Bytes()
}

// weights is a small model in the safetensors format: the length of a header, the
// header in JSON, and the numbers.
func weights(rng *rand.Rand) []byte {
	const rows, columns = 64, 48
	header := fmt.Sprintf(
		`{"__metadata__":{"format":"pt"},"dense.weight":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, rows,
		columns, rows*columns*4)
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	data = append(data, header...)
	for range rows * columns {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64()/8)))
	}
	return data
}

// Keeper keeps folders and their files; an agent is one.
type Keeper interface {
	CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error)
	MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error
	WriteUpload(ctx context.Context, place session.Place, up session.Upload, from io.Reader) (int64, error)
	FinishUpload(ctx context.Context, place session.Place, req session.FinishRequest) (session.FileInfo, error)
}

// Fill makes folders with their files, unless they were made by an earlier start.
func Fill(ctx context.Context, on Keeper, folders []Folder) error {
	for _, folder := range folders {
		made, err := on.CreateFolder(ctx, session.FolderRequest{Owner: Person, Name: folder.Name})
		if session.CodeOf(err) == "folder_create_already-exists" {
			continue
		}
		if err != nil {
			return err
		}
		for _, file := range folder.Files {
			if err := put(ctx, on, session.Place{Folder: made.ID}, file); err != nil {
				return fmt.Errorf("write %s/%s: %w", folder.Name, file.Name, err)
			}
		}
	}
	return nil
}

// put writes one file as any upload is written.
func put(ctx context.Context, on Keeper, place session.Place, file File) error {
	if dir := path.Dir(file.Name); dir != "." {
		if err := on.MakeDirectory(ctx, place, session.FilePath(dir), true); err != nil {
			return err
		}
	}
	up := session.Upload{Path: session.FilePath(file.Name), Key: "demo"}
	if _, err := on.WriteUpload(ctx, place, up, bytes.NewReader(file.Content)); err != nil {
		return err
	}
	_, err := on.FinishUpload(ctx, place, session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(file.Content))}})
	return err
}
