package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wireOwners are the packages whose types are the wire. A struct of backend/api
// that repeats one of theirs is written twice.
var wireOwners = []string{"backend/session", "backend/hub", "gpu", "backend/settings"}

// repeatedShare is the part of its fields, in percent, from which on a struct
// repeats another one.
const repeatedShare = 70

// repeatedFields is the least number of fields that are compared, and larger is
// how many times as many the other struct may have: a request that names two
// fields of something large does not repeat it.
const (
	repeatedFields = 2
	larger         = 3
)

// stillRepeated are the structs of backend/api that repeat another one and are
// still to go.
var stillRepeated = []string{
	"api.Accelerator", "api.AgentRequest", "api.Amount", "api.App", "api.AuditEntry", "api.Check",
	"api.DeviceBoard", "api.DeviceHolder", "api.DeviceInstance", "api.DeviceLoad", "api.DevicePoint",
	"api.DirectoryEntry", "api.DirectoryListing", "api.EndImage", "api.EnvVar", "api.ExecRequest",
	"api.FieldProblem", "api.FileInfo", "api.FileListing", "api.FinishRequest", "api.Folder",
	"api.FolderMount", "api.FolderRemoval", "api.FolderRequest", "api.FolderUpdate", "api.FolderUsage",
	"api.FolderUser", "api.Grant", "api.IdleCheck", "api.IdleMetric", "api.IdleSimulation", "api.Image",
	"api.ImageOrigin", "api.ImageUser", "api.LaunchManyRequest", "api.LaunchRequest", "api.Limit",
	"api.Mount", "api.PersonLimit", "api.Phase", "api.Phrase", "api.Placement", "api.Preset",
	"api.PresetRequest", "api.Problem", "api.Pull", "api.Recent", "api.Resources", "api.Rounding",
	"api.Session", "api.Settings", "api.Spec", "api.Step", "api.Terminal", "api.TerminalRequest",
	"api.Usage", "api.UsePolicy", "api.Wait", "api.Warning",
}

func TestTheAPIRepeatsNoType(t *testing.T) {
	owned, views := map[string]map[string]string{}, map[string]map[string]string{}
	for _, f := range goFiles(t) {
		switch pkg := f.pkg(); {
		case f.isTest():
		case pkg == "backend/api":
			addStructs(views, "api", f.syntax)
		case slices.Contains(wireOwners, pkg):
			addStructs(owned, pkg[strings.LastIndex(pkg, "/")+1:], f.syntax)
		}
	}
	var found []string
	for name, fields := range views {
		other, same := mostAlike(fields, owned)
		if len(fields) < repeatedFields || same*100 < repeatedShare*len(fields) {
			continue
		}
		found = append(found, name)
		if !slices.Contains(stillRepeated, name) {
			t.Errorf("%s repeats %s in %d of %d fields; use that one, or embed it", name, other, same, len(fields))
		}
	}
	for _, name := range stillRepeated {
		if !slices.Contains(found, name) {
			t.Errorf("%s repeats nothing any more; take it off the list", name)
		}
	}
}

// mostAlike is the struct that has most of the fields, and how many.
func mostAlike(fields map[string]string, owned map[string]map[string]string) (name string, most int) {
	for other, theirs := range owned {
		same := 0
		for field, tag := range fields {
			if theirs[field] == tag && len(theirs) <= larger*len(fields) {
				same++
			}
		}
		if same > most || same == most && other < name {
			name, most = other, same
		}
	}
	return name, most
}

// addStructs adds the structs of a file by package and name: the JSON names of
// their fields by their names. What a struct embeds is not repeated, and a field
// that may be left as it is differs from one that has a value.
func addStructs(into map[string]map[string]string, pkg string, file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			typ := spec.(*ast.TypeSpec)
			body, ok := typ.Type.(*ast.StructType)
			if !ok {
				continue
			}
			fields := map[string]string{}
			for _, f := range body.Fields.List {
				for _, name := range f.Names {
					if tag := jsonName(f); tag != "" {
						fields[name.Name] = tag
					}
				}
			}
			into[fmt.Sprintf("%s.%s", pkg, typ.Name.Name)] = fields
		}
	}
}

// jsonName is the name of a field on the wire, "" where it has none.
func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
	if _, pointer := f.Type.(*ast.StarExpr); pointer && name != "" {
		name = "*" + name
	}
	return name
}

func TestARepeatedTypeIsFound(t *testing.T) {
	owned := map[string]map[string]string{"session.Pull": {"Current": "current", "Total": "total", "Rate": "rate"}}
	for _, c := range []struct {
		fields map[string]string
		same   int
	}{
		{map[string]string{"Current": "current", "Rate": "rate"}, 2},
		{map[string]string{"Current": "now", "Total": "total"}, 1},
		{map[string]string{"Done": "done"}, 0},
	} {
		if _, same := mostAlike(c.fields, owned); same != c.same {
			t.Errorf("%v has %d fields of another, want %d", c.fields, same, c.same)
		}
	}
}
