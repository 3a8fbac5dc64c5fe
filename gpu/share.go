package gpu

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// UUID names a device or a MIG instance as its driver does, for example
// "GPU-8f6a…" or "MIG-1c9e…". Devices are addressed by it and never by index,
// because the order of devices differs between libraries and changes at a
// reboot.
type UUID string

// MilliJoule is an amount of energy in thousandths of a joule.
type MilliJoule int64

// MilliWatt is a power in thousandths of a watt.
type MilliWatt int64

// Share is a part of devices in thousandths of one device: 1000 is one device
// and 1500 is one and a half. It is written to JSON as that integer and read
// from either the integer or a text such as "0.5" (see [ParseShare]).
type Share int

// WholeDevice is the share that is one device.
const WholeDevice Share = 1000

// DefaultQuantum is the smallest share that is given unless configured
// otherwise: a tenth of a device.
const DefaultQuantum Share = 100

// maxShare bounds what a request may name, so that sums cannot overflow.
const maxShare = 1024 * WholeDevice

// ParseShare reads a decimal number of devices such as "0.5" or "2". It
// refuses what is negative, has more than three decimals, or is above 1024.
func ParseShare(text string) (Share, error) {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	thousandths := value * float64(WholeDevice)
	if err != nil || !(value >= 0) || thousandths > float64(maxShare) ||
		math.Abs(thousandths-math.Round(thousandths)) > 1e-6 {
		const why = "%q is not a share of devices: write a number with at most three decimals, for example 0.5"
		return 0, fmt.Errorf(why, text)
	}
	return Share(math.Round(thousandths)), nil
}

// String writes s as a number of devices: "0.5", "2".
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)/float64(WholeDevice), 'f', -1, 64)
}

// UnmarshalJSON accepts an integer number of thousandths or a text for
// [ParseShare].
func (s *Share) UnmarshalJSON(data []byte) error {
	if quoted, err := readQuoted(data, s, ParseShare); quoted {
		return err
	}
	n, err := strconv.Atoi(string(data))
	if err != nil || n < 0 || n > int(maxShare) {
		return fmt.Errorf("%s is not a whole number of thousandths of a device", data)
	}
	*s = Share(n)
	return nil
}

// Of is the part of total that s stands for, rounded down to a whole byte. A
// share of one device or more stands for all of it.
func (s Share) Of(total Bytes) Bytes {
	if s >= WholeDevice {
		return total
	}
	if s <= 0 || total <= 0 {
		return 0
	}
	whole, rest := total/Bytes(WholeDevice), total%Bytes(WholeDevice)
	return whole*Bytes(s) + rest*Bytes(s)/Bytes(WholeDevice)
}
