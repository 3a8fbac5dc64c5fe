package session

import "slices"

// Feature is something that can be done on most machines.
type Feature string

// The features that a machine may lack.
const (
	FeatureDevices Feature = "devices"        // its devices are listed and measured, and who holds what of them
	FeatureGuard   Feature = "guard"          // who uses more of a device's memory than granted is warned or ended
	FeatureMPS     Feature = "mps"            // a device is shared through MPS
	FeatureNVIDIA  Feature = "nvidia"         // sessions get NVIDIA devices
	FeatureCommit  Feature = "commit"         // an image is made of a session
	FeatureBuild   Feature = "build"          // an image is built of a project
	FeatureMounts  Feature = "mounts"         // sessions see directories and folders of the machine
	FeatureRaise   Feature = "raise-priority" // a session goes before others, or a waiting one is moved up
)

// missing are the phrases that say why something cannot be done.
var missing = map[Feature]string{
	FeatureDevices: "lacksDevices", FeatureGuard: "lacksGuard", FeatureMPS: "lacksMPS", FeatureCommit: "lacksCommit",
	FeatureBuild: "lacksBuild", FeatureNVIDIA: "lacksNVIDIA", FeatureMounts: "lacksMounts", FeatureRaise: "lacksRaise",
}

// Missing says that a machine lacks a feature.
func (f Feature) Missing() Phrase { return Say(missing[f]) }

// Fault is the fault of a field that needs a feature that the machine lacks.
func (f Feature) Fault(field string) FieldError { return Fault(field, KindConflict, f.Missing()) }

// CheckLacks returns what a spec asks for that a machine lacks.
func (s Spec) CheckLacks(lacks []Feature) (wrong []FieldError) {
	for _, one := range []struct {
		asked   bool
		feature Feature
		field   string
	}{
		{s.MPS, FeatureMPS, "mps"},
		{s.CommitOnEnd > 0, FeatureCommit, "commitOnEnd"},
		{len(s.Mounts) > 0, FeatureMounts, "mounts"},
		{s.Priority != nil && *s.Priority > DefaultPriority, FeatureRaise, "priority"},
	} {
		if one.asked && slices.Contains(lacks, one.feature) {
			wrong = append(wrong, one.feature.Fault(one.field))
		}
	}
	return wrong
}
