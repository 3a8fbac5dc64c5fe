package gpu

import (
	"testing"
	"time"
)

// bookEnded books a sample in which nobody is on the device and processes ended.
func (b *bench) bookEnded(util int, ended ...EndedProcess) {
	b.t.Helper()
	for i := range ended {
		ended[i].Device, ended[i].PID = "G", 200+i
	}
	b.a.Book(Sample{At: b.at, Epoch: b.e, Devices: []DeviceSample{{UUID: "G", Util: &util, MemoryUsed: ptr(Bytes(0))}},
		Ended: ended})
	b.check()
}

func TestAccountsChargeProcessesThatEndedBetweenSamples(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, 10*GiB)
	b.bookEnded(0)
	b.pass(2 * time.Second)
	b.bookEnded(8000, EndedProcess{Busy: 600 * time.Millisecond, Known: true, Container: "c-a", Peak: ptr(3 * GiB)},
		EndedProcess{Busy: 300 * time.Millisecond, Known: true, User: "ann"})
	b.want("a's busy time", b.row("a").BusyGPUMs, int64(600))
	b.want("a's peak", b.row("a").VRAMPeak, 3*GiB)
	b.want("a's measured time", b.row("a").CoveredMs, int64(2000))
	b.want("the busy time of others", b.row(Others).BusyGPUMs, int64(300))
	b.want("what nobody explains", b.row(Unattributed).BusyGPUMs, int64(700))
	b.pass(2 * time.Second)
	b.bookEnded(5000, EndedProcess{Busy: time.Second})
	b.want("a's busy time with its promise's part of an unknown process", b.row("a").BusyGPUMs, int64(600+500))
	b.want("a's estimated time", b.row("a").EstimatedMs, int64(2000))
	b.want("what nobody explains then", b.row(Unattributed).BusyGPUMs, int64(700+500))
	b.pass(2 * time.Second)
	b.bookEnded(1000, EndedProcess{Busy: 2 * time.Second, Known: true, Container: "c-a"})
	b.want("a's busy time, of which the device has the last word", b.row("a").BusyGPUMs, int64(1100+200))
}
