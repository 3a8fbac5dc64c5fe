package demo

import (
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Act is one launch of a story.
type Act struct {
	Owner string // empty: the person that the demonstration is told of
	Spec  session.Spec
}

// Images that the simulated machines have from the beginning.
const (
	imageNotebook = "quay.io/jupyter/minimal-notebook:latest"
	imageTorch    = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
	imagePython   = "python:3.12"
)

// work is a session that computes for as long as it is told, and logs as training does.
func work(name, label string, cpus int, memory gpu.Bytes, accelerator gpu.Request, hours float64) session.Spec {
	return session.Spec{
		Name: name, Type: session.Batch, Image: imageTorch, Label: label, Accelerator: accelerator,
		Resources: session.Resources{CPU: cpus, Memory: memory},
		Command:   training(cpus, memory, time.Duration(hours*float64(time.Hour))),
		Lifetime:  session.Lifetime{Timeout: session.Duration(time.Duration(hours*float64(time.Hour)) + time.Hour)},
	}
}

// desk is a session that a person works in.
func desk(name, image, label string, cpus int, memory gpu.Bytes, accelerator gpu.Request) session.Spec {
	return session.Spec{Name: name, Type: session.Interactive, Image: image, Label: label, Accelerator: accelerator,
		Resources: session.Resources{CPU: cpus, Memory: memory}}
}

func devices(n int) gpu.Request { return gpu.Request{Devices: n} }

func share(s gpu.Share) gpu.Request { return gpu.Request{Shares: s} }

// OnWorkstation is what runs on the workstation in a story, in the order of its launches.
func OnWorkstation(o Options) []Act {
	mount := []session.Mount{{Folder: "churn"}}
	notebook, train := desk("notebook", imageNotebook, "churn", 4, 12*gpu.GiB, share(500)),
		work("train-churn", "churn", 4, 16*gpu.GiB, share(500), 3)
	notebook.Mounts, train.Mounts = mount, mount
	acts := []Act{{Spec: notebook}, {Spec: train}}
	switch o.Story {
	case StoryFailure:
		return append(acts, failures()...)
	case StoryIdle:
		return acts
	case StoryLab:
		return append(acts, diverged(), forgotten())
	case StoryWorkstation, StoryShortage:
	}
	return append(acts, diverged())
}

// Pinned are the launches on the workstation that the person has pinned, by the names of their sessions, with what they
// are called.
var Pinned = map[string]string{"notebook": "My notebook", "train-churn": "Churn, nightly"}

// Preset is a bundle of resources that the person has saved.
type Preset struct {
	Name        string
	Resources   session.Resources
	Accelerator gpu.Request
}

// Presets are those of the person.
func Presets() []Preset {
	return []Preset{
		{Name: "Half a GPU", Resources: session.Resources{CPU: 4, Memory: 16 * gpu.GiB}, Accelerator: share(500)},
		{Name: "Two H100", Resources: session.Resources{CPU: 24, Memory: 256 * gpu.GiB}, Accelerator: devices(2)},
	}
}

// diverged ends by itself, with an exit code and a last line that says why.
func diverged() Act {
	return Act{Spec: session.Spec{
		Name: "sweep-lr-0.3", Type: session.Batch, Image: imagePython, Label: "churn",
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB},
		Command: "echo 'epoch 1/40  loss 2.31'\nsleep 2\necho 'epoch 2/40  loss nan'\necho 'ValueError: loss is NaN " +
			"after step 812; lower --lr (0.3)' >&2\nexit 3\n",
	}}
}

// failures end in the ways in which sessions fail.
func failures() []Act {
	small := session.Resources{CPU: 1, Memory: gpu.GiB}
	return []Act{
		diverged(),
		{Spec: session.Spec{Name: "image-mistyped", Type: session.Batch, Image: "pytorch/pytorhc:2.5", Label: "churn",
			Resources: small, Command: "python train.py"}},
		{Spec: session.Spec{Name: "batch-too-large", Type: session.Batch, Image: imagePython, Label: "churn",
			Resources: small, Command: tooLarge(small.Memory)}},
		{Spec: session.Spec{Name: "too-slow", Type: session.Batch, Image: imagePython, Label: "churn", Resources: small,
			Command:  "echo working\nsleep 3600\n",
			Lifetime: session.Lifetime{Timeout: session.Duration(5 * time.Second)}}},
	}
}

// forgotten is announced to be reclaimed soon after it has started: its time is so short that a warning of a quarter of
// it begins a minute and a half in.
func forgotten() Act { return unused("forgotten", 2*time.Minute) }

// abandoned is reclaimed after a minute, and announced within it.
func abandoned() Act { return unused("abandoned", time.Minute) }

// unused is reclaimed when nobody has used it for a while.
func unused(name string, after time.Duration) Act {
	spec := desk(name, imageNotebook, "churn", 2, 4*gpu.GiB, gpu.Request{})
	spec.Idle = &session.IdlePolicy{Network: session.Duration(after)}
	return Act{Spec: spec}
}

// OnLab is what runs and waits on the lab server in a story. What waits does so because seven and a half of its eight
// devices are taken, or all of them.
func OnLab(o Options) []Act {
	acts := []Act{
		{Owner: "mina", Spec: work("llm-pretrain", "lang", 32, 256*gpu.GiB, devices(4), 30)},
		{Owner: "joon", Spec: work("protein-fold", "bio", 24, 192*gpu.GiB, devices(2), 9)},
		{Owner: "lena", Spec: desk("diffusion-lora", imageNotebook, "vision", 12, 96*gpu.GiB, devices(1))},
		{Owner: "omar", Spec: desk("serve-whisper", imageTorch, "speech", 4, 24*gpu.GiB, share(500))},
		{Spec: work("vision-finetune", "vision", 8, 64*gpu.GiB, share(500), 2)},
		{Owner: "mina", Spec: work("llm-eval", "lang", 16, 128*gpu.GiB, devices(2), 4)},
	}
	if o.Story == StoryShortage {
		acts = append(acts,
			Act{Owner: "joon", Spec: work("docking", "bio", 8, 64*gpu.GiB, devices(1), 2)},
			Act{Spec: work("vision-ablation", "vision", 8, 64*gpu.GiB, devices(1), 1)},
			Act{Owner: "lena", Spec: desk("upscale", imageNotebook, "vision", 4, 32*gpu.GiB, share(300))},
		)
	}
	report := session.Spec{
		Name: "vision-report", Type: session.Batch, Image: imagePython, Label: "vision",
		Resources: session.Resources{CPU: 2, Memory: 4 * gpu.GiB},
		Command:   "echo 'report written'", Schedule: session.Schedule{After: []string{"vision-finetune"}},
	}
	acts = append(acts, Act{Spec: report})
	if o.Story == StoryIdle {
		acts = append(acts, forgotten(), abandoned()) // the newest are seen first
	}
	return acts
}
