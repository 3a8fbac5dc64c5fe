package demo

import (
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Act is one launch of a story.
type Act struct {
	Owner string // empty: [Person]
	Spec  session.Spec
}

// Images that the simulated machines have.
const (
	imageNotebook = "quay.io/jupyter/minimal-notebook:latest"
	imageTorch    = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
	imagePython   = "python:3.12"
)

// work returns a batch session that trains for some hours.
func work(name, label string, cpus int, memory gpu.Bytes, accelerator gpu.Request, hours int) session.Spec {
	length := time.Duration(hours) * time.Hour
	spec := desk(name, imageTorch, label, cpus, memory, accelerator)
	spec.Type, spec.Command = session.Batch, training(cpus, memory, length)
	spec.Timeout = session.Duration(length + time.Hour)
	return spec
}

func desk(name, image, label string, cpus int, memory gpu.Bytes, accelerator gpu.Request) session.Spec {
	return session.Spec{Name: name, Type: session.Interactive, Image: image, Label: label, Accelerator: accelerator,
		Resources: session.Resources{CPU: cpus, Memory: memory}}
}

func devices(n int) gpu.Request { return gpu.Request{Devices: n} }

func share(s gpu.Share) gpu.Request { return gpu.Request{Shares: s} }

// OnWorkstation returns the launches of a story on the workstation, in order.
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

// Pinned has the names of pinned launches on the workstation by the names of their sessions.
var Pinned = map[string]string{"notebook": "My notebook", "train-churn": "Churn, nightly"}

// Presets returns the resource presets of the person.
func Presets() []session.Spec {
	return []session.Spec{
		{Name: "Half a GPU", Resources: session.Resources{CPU: 4, Memory: 16 * gpu.GiB}, Accelerator: share(500)},
		{Name: "Two H100", Resources: session.Resources{CPU: 24, Memory: 256 * gpu.GiB}, Accelerator: devices(2)},
	}
}

// diverged fails with an exit code, and says why in its last line.
func diverged() Act {
	return Act{Spec: session.Spec{
		Name: "sweep-lr-0.3", Type: session.Batch, Image: imagePython, Label: "churn",
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB},
		Command: "echo 'epoch 1/40  loss 2.31'\nsleep 2\necho 'epoch 2/40  loss nan'\necho 'ValueError: loss is NaN " +
			"after step 812; lower --lr (0.3)' >&2\nexit 3\n",
	}}
}

func failures() []Act {
	batch := func(name, image, command string) Act {
		return Act{Spec: session.Spec{Name: name, Type: session.Batch, Image: image, Label: "churn",
			Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, Command: command}}
	}
	// It needs four times its memory.
	tooLarge := batch("batch-too-large", imagePython,
		fmt.Sprintf("echo 'loading %s of features'\nstress --cpu 1 --vm 1 --vm-bytes %d --timeout 60\n", 4*gpu.GiB,
			int64(4*gpu.GiB)))
	tooSlow := batch("too-slow", imagePython, "echo working\nsleep 3600\n")
	tooSlow.Spec.Timeout = session.Duration(5 * time.Second)
	return []Act{diverged(), batch("image-mistyped", "pytorch/pytorhc:2.5", "python train.py"), tooLarge, tooSlow}
}

// forgotten is about to be reclaimed: the warning begins a minute after its start.
func forgotten() Act { return unused("forgotten", 2*time.Minute) }

// abandoned is reclaimed after a minute.
func abandoned() Act { return unused("abandoned", time.Minute) }

func unused(name string, after time.Duration) Act {
	spec := desk(name, imageNotebook, "churn", 2, 4*gpu.GiB, gpu.Request{})
	spec.Idle = &session.IdlePolicy{Network: session.Duration(after)}
	return Act{Spec: spec}
}

// OnLab returns the launches of a story on the lab server. Some wait because seven and a half of its eight devices are
// allocated, or all.
func OnLab(o Options) []Act {
	acts := []Act{
		{Owner: "mina", Spec: work("llm-pretrain", "lang", 32, 256*gpu.GiB, devices(4), 30)},
		{Owner: "joon", Spec: work("protein-fold", "bio", 24, 192*gpu.GiB, devices(2), 9)},
		{Owner: "lena", Spec: desk("diffusion-lora", imageNotebook, "vision", 12, 96*gpu.GiB, devices(1))},
		{Owner: "omar", Spec: desk("serve-whisper", imageTorch, "speech", 4, 24*gpu.GiB, share(300))},
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
		acts = append(acts, forgotten(), abandoned()) // the newest are shown first
	}
	return acts
}

// training returns a script that uses a part of its resources and prints a line for each epoch.
func training(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + steps(length, 20*time.Second, "epoch", "loss 0.$((9000 / (epoch + 9)))")
}

// features returns a script that processes a table part by part.
func features(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + steps(length, 30*time.Second, "part", "$((part * 48211)) rows") +
		"echo \"features.parquet written\"\n"
}

// steps returns a script that prints a line for each step of a length.
func steps(length, each time.Duration, name, line string) string {
	return fmt.Sprintf(`%[1]ss=%[3]d
for %[1]s in $(seq 1 $%[1]ss); do
  echo "%[1]s $%[1]s/$%[1]ss  %[2]s"
  sleep %[4]d
done
`, name, line, max(1, int(length/each)), int(each.Seconds()))
}

// busy returns the beginning of a script that uses CPUs and memory in the background.
func busy(cpus int, memory gpu.Bytes, length time.Duration) string {
	return fmt.Sprintf("stress --cpu %d --vm 1 --vm-bytes %d --timeout %d &\n", max(1, cpus*3/4), int64(memory)/10*6,
		int(length.Seconds()))
}
