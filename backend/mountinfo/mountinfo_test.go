package mountinfo

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	text := "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n" +
		"no mount\n" +
		`40 36 0:45 /a\040b /c\134\011 rw - tmpfs none rw` + "\n"
	want := []Mount{
		{ID: 36, Device: "98:0", Root: "/mnt1", Point: "/mnt2"},
		{ID: 40, Device: "0:45", Root: "/a b", Point: "/c\\\t"},
	}
	if got := Parse(text); !slices.Equal(got, want) {
		t.Errorf("parsed %+v", got)
	}
}
