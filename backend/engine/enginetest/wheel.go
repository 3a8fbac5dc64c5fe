package enginetest

import (
	"archive/zip"
	"bytes"
	"io"
	"testing"
)

// Wheel returns a package for pip with one module, which says hello: the same bytes each time.
func Wheel(t testing.TB, name string) string {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	at := name + "-1.0.dist-info/"
	for _, one := range [][2]string{{name + ".py", "def hello(): print('hello from " + name + "')\n"},
		{at + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"},
		{at + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{at + "RECORD", ""}} {
		part, err := w.Create(one[0])
		if err == nil {
			_, err = io.WriteString(part, one[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}
