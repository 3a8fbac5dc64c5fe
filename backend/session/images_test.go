package session

import "testing"

func TestBroughtImagesGetNamesOfTheirOwners(t *testing.T) {
	for ref, want := range map[string]string{
		"python:3.12":                                  "slipway-custom/bob/python:3.12",
		"docker.io/library/python":                     "slipway-custom/bob/library/python:latest",
		"Registry.Lab:5000/team/tool:1":                "slipway-custom/bob/registry-lab-5000/team/tool:1",
		"[::1]:5000/tool:1":                            "slipway-custom/bob/1-5000/tool:1",
		"slipway-custom/ada:Mine-1":                    "slipway-custom/bob/ada:Mine-1",
		"slipway-custom/ada/team/tool:1":               "slipway-custom/bob/team/tool:1",
		"sha256:0123456789abcdef":                      "slipway-custom/bob/sha256:0123456789abcdef",
		"no name":                                      "",
		"tool@sha256:0123456789abcdef0123456789abcdef": "slipway-custom/bob/tool:latest",
	} {
		if got := BroughtRef("bob", ref); got != want {
			t.Errorf("%s becomes %q, want %q", ref, got, want)
		}
	}
	for ref, own := range map[string]bool{
		"slipway-custom/bob:x": true, "slipway-custom/bob/x:1": true, "slipway-custom/bob@sha256:00": true,
		"slipway-custom/bob":     false,
		"slipway-custom/bobby:x": false, "evil/slipway-custom/bob:x": false, "slipway-custom/bob-x:1": false,
		"python:3.12": false,
	} {
		if OwnRef("bob", ref) != own {
			t.Errorf("%s is bob's: %v", ref, !own)
		}
	}
}

// FuzzBroughtRef brings an image under any name as any person: the name that it
// gets is valid, theirs and of no registry.
func FuzzBroughtRef(f *testing.F) {
	f.Add("bob", "python:3.12")
	f.Add("Ann Example", "[::1]:5000/a/b@sha256:0123456789abcdef0123456789abcdef")
	f.Add("../ada", "slipway-custom/ada/x:1")
	f.Fuzz(func(t *testing.T, owner, ref string) {
		got := BroughtRef(owner, ref)
		if got == "" || owner == "" {
			return
		}
		if !ValidImage(got) || !OwnRef(owner, got) || !CustomizedRef(got) {
			t.Errorf("%q of %q becomes %q", ref, owner, got)
		}
		if owner != "ada" && OwnRef("ada", got) {
			t.Errorf("%q of %q becomes ada's: %q", ref, owner, got)
		}
	})
}
