package drm

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/gpu"
)

type card struct {
	dir    string // its directory under sys/class/drm/cardN/device
	uuid   gpu.UUID
	vendor gpu.Vendor
	pci    string
	driver string
	render string // "renderD128"
	kfd    string // number of the device in AMD's compute interface; empty: none
}

var cardName = regexp.MustCompile(`^card\d+$`)

var vendors = map[string]gpu.Vendor{"0x1002": gpu.AMD, "0x8086": gpu.Intel}

// cards lists the devices with a render node, by their address.
func (s *Source) cards() []card {
	entries, _ := os.ReadDir(filepath.Join(s.root, "sys/class/drm")) // fails on a machine without graphics
	var found []card
	for _, e := range entries {
		if !cardName.MatchString(e.Name()) {
			continue
		}
		c := card{dir: filepath.Join(s.root, "sys/class/drm", e.Name(), "device")}
		vendor, ok := vendors[c.text("vendor")]
		if !ok {
			continue
		}
		c.vendor = vendor
		c.pci, c.driver = uevent(c.text("uevent"))
		nodes, err := filepath.Glob(filepath.Join(c.dir, "drm/renderD*"))
		if err != nil || len(nodes) == 0 || c.pci == "" || c.integrated() {
			continue
		}
		c.render = filepath.Base(nodes[0])
		c.kfd = s.kfdID(c.render)
		c.uuid = gpu.UUID("PCI-" + c.pci)
		if id := c.text("unique_id"); id != "" && strings.Trim(id, "0") != "" {
			c.uuid = gpu.UUID("GPU-" + id)
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b card) int { return cmp.Compare(a.pci, b.pci) })
	return found
}

// uevent finds the address and the driver of a device in the text of its uevent file.
func uevent(text string) (pci, driver string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "PCI_SLOT_NAME":
			pci = value
		case "DRIVER":
			driver = value
		}
	}
	return pci, driver
}

// integrated reports graphics of an Intel processor, which are on its own bus and have no memory. They are not listed.
func (c card) integrated() bool {
	return c.vendor == gpu.Intel && strings.HasPrefix(c.pci, "0000:00:")
}

// text reads a file without the blanks around it, "" if there is none.
func text(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (c card) text(name string) string { return text(filepath.Join(c.dir, name)) }

// number reads the first of some files in dir that has a whole number.
func number(dir string, names ...string) (int64, bool) {
	for _, name := range names {
		if n, err := strconv.ParseInt(text(filepath.Join(dir, name)), 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}

// sensor reads a number of the device's monitor in thousandths of a unit; nil if there is none. The directory of the
// monitor has another name at every boot.
func sensor[T ~int | ~int64](c card, names ...string) *T {
	dirs, _ := filepath.Glob(filepath.Join(c.dir, "hwmon/hwmon*")) // fails only for a bad pattern
	for _, dir := range dirs {
		if n, ok := number(dir, names...); ok {
			return new(T(n / 1000))
		}
	}
	return nil
}

func (c card) total() gpu.Bytes {
	n, _ := number(c.dir, "mem_info_vram_total", "tile0/physical_vram_size_bytes", "lmem_total_bytes")
	return gpu.Bytes(n)
}

func (c card) device(index int, root string) gpu.Device {
	d := gpu.Device{UUID: c.uuid, Vendor: c.vendor, Model: c.model(), Index: index, PCI: c.pci, Memory: c.total(),
		Driver: c.driver}
	if c.kfd != "" {
		d.Nodes = append(d.Nodes, "/dev/kfd")
	}
	d.Nodes = append(d.Nodes, "/dev/dri/"+c.render)
	d.Capabilities = c.capabilities(root)
	return d
}

var makers = map[gpu.Vendor]string{gpu.AMD: "AMD", gpu.Intel: "Intel"}

func (c card) model() string {
	if name := c.text("product_name"); name != "" {
		return name
	}
	return makers[c.vendor] + " device " + strings.TrimPrefix(c.text("device"), "0x")
}

func (c card) capabilities(root string) gpu.Capabilities {
	no := func(why string) gpu.Probe { return gpu.Probe{State: gpu.No, Why: why} }
	caps := gpu.Capabilities{
		Accounting: no("the driver keeps no records of ended processes"),
		MIG:        no("only NVIDIA devices are divided this way"),
		MPS:        no("MPS is NVIDIA's"),
		Energy:     gpu.Probe{State: gpu.Yes},
	}
	if sensor[int](c, "energy1_input") == nil {
		caps.Energy = no("the driver has no counter of energy (energy1_input); power is integrated")
	}
	caps.MemoryLimit = no("the kernel has no control group for the memory of devices (dmem, from 6.14 on)")
	if groups, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup/cgroup.controllers")); err == nil &&
		slices.Contains(strings.Fields(string(groups)), "dmem") {
		caps.MemoryLimit = no("the kernel could limit it (dmem), but container engines do not ask it to")
	}
	caps.ProcessMemory = c.probeClients(root)
	caps.ProcessUtil = caps.ProcessMemory
	if c.total() == 0 && caps.ProcessMemory.State == gpu.Yes {
		caps.ProcessMemory = no("the device has no memory of its own")
	}
	return caps
}

// probeClients opens the device and looks whether the kernel then reports what this process uses of it.
func (c card) probeClients(root string) gpu.Probe {
	node, err := os.OpenFile(filepath.Join(root, "dev/dri", c.render), os.O_RDWR, 0)
	if err != nil {
		return gpu.Probe{State: gpu.Unknown, Why: "this user may not open /dev/dri/" + c.render +
			" (join the groups video and render)"}
	}
	defer node.Close()
	info, err := os.ReadFile(filepath.Join(root, "proc/self/fdinfo", strconv.Itoa(int(node.Fd()))))
	if err == nil && parseClient(info).valid() {
		return gpu.Probe{State: gpu.Yes}
	}
	return gpu.Probe{State: gpu.No,
		Why: "this kernel does not say what each process takes of the device (drm-client-id in fdinfo)"}
}

// sample is the state of the device. What the kernel lacks for it is the sum over its processes, if all are seen.
func (c card) sample(uses []use, elapsed time.Duration, all bool) gpu.DeviceSample {
	d := gpu.DeviceSample{UUID: c.uuid}
	busy, known := 0, false
	for _, u := range uses {
		if u.util != nil {
			busy += *u.util
		}
	}
	busy = min(busy, fullUtil)
	if percent, ok := number(c.dir, "gpu_busy_percent"); ok && percent <= 100 {
		busy, known = max(busy, int(percent)*100), true
	}
	if known || all && elapsed > 0 {
		d.Util = &busy
	}
	if used, ok := number(c.dir, "mem_info_vram_used"); ok {
		d.MemoryUsed = new(gpu.Bytes(used))
		d.MemoryFree = new(max(0, c.total()-gpu.Bytes(used)))
	} else if total := c.total(); total > 0 && all {
		var sum gpu.Bytes
		for _, u := range uses {
			sum += u.memory
		}
		d.MemoryUsed = new(sum)
	}
	d.Power = sensor[gpu.MilliWatt](c, "power1_average", "power1_input")
	d.PowerLimit = sensor[gpu.MilliWatt](c, "power1_cap", "power1_max")
	d.Energy = sensor[gpu.MilliJoule](c, "energy1_input")
	d.Temperature = sensor[int](c, "temp1_input", "temp2_input")
	return d
}

// kfdID finds the number of the device with a render node in AMD's compute interface (KFD). That has its own numbers of
// devices and lists the processes that compute, with their memory, for everybody to see.
func (s *Source) kfdID(render string) string {
	minor := strings.TrimPrefix(render, "renderD")
	nodes, _ := filepath.Glob(filepath.Join(s.root, "sys/class/kfd/kfd/topology/nodes/*/properties"))
	for _, file := range nodes {
		for line := range strings.Lines(text(file)) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "drm_render_minor" &&
				fields[1] == minor {
				return text(filepath.Join(filepath.Dir(file), "gpu_id"))
			}
		}
	}
	return ""
}

func (s *Source) kfdMemory(c card) map[int]gpu.Bytes {
	if c.kfd == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(s.root, "sys/class/kfd/kfd/proc/*/vram_"+c.kfd))
	found := map[int]gpu.Bytes{}
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if n, ok := number(filepath.Dir(file), filepath.Base(file)); ok && err == nil && n > 0 {
			found[pid] = gpu.Bytes(n)
		}
	}
	return found
}
