package gpu

// Loss says that a device that the machine had cannot be used now, and why. It
// may come back: after a reset, when the driver is loaded again, or by itself.
type Loss struct {
	Kind LossKind `json:"kind"`
	Why  string   `json:"why"` // a clause, for example "it fell off the bus"
}

// LossKind says in which way a device is lost.
type LossKind string

// The kinds. Fallen: the driver cannot reach it on the bus. Reset: it must be
// reset before anything can use it. Silent: the driver hangs or crashes over
// it. Unlisted: the driver does not tell of it any more.
const (
	LossFallen   LossKind = "fallen"
	LossReset    LossKind = "reset"
	LossSilent   LossKind = "silent"
	LossUnlisted LossKind = "unlisted"
)

// LostDevice is a device of the last inventory that cannot be used now.
type LostDevice struct {
	UUID UUID `json:"uuid"`
	Loss
}

// Hint says in a sentence what a person can do about a loss.
func (l Loss) Hint() string {
	switch l.Kind {
	case LossFallen:
		return "Restart the computer. If it happens again, check the card's power, cooling and seating."
	case LossReset:
		return "End the programs that use it and reset it (nvidia-smi --gpu-reset), or restart the computer."
	case LossSilent:
		return "Slipway keeps trying. If nvidia-smi does not answer either, restart the computer."
	}
	return "Check that it is plugged in and its driver is loaded. If it stays lost, restart the computer."
}

// Mended returns devices as they are once those that are lost are back.
func Mended(devices []Device) []Device {
	whole := make([]Device, len(devices))
	for i, d := range devices {
		d.Lost = nil
		whole[i] = d
	}
	return whole
}
