package vet

import (
	"path"
	"reflect"
	"strings"

	"slipway/backend/session"
)

// places are the rules of what tells of files and folders. Names of files are
// bytes that people and programs chose, of any kind: whoever prints one escapes
// it. What they never do is lead to another directory. Names of directories that
// are no [session.FilePath] are only shown, and cleaned.
var places = Tables{Fields: map[reflect.Type]Fields{
	reflect.TypeFor[session.FileInfo](): {"Name": fileName, "Size": size, "Mode": Free,
		"Modified": OrZero(Moment), "Version": Maybe(Mark)},
	reflect.TypeFor[session.FileListing](): {"Path": filePath, "Entries": List(session.MaxListed), "Total": count},
	reflect.TypeFor[session.DirectoryListing](): {
		"Path": Both(directory, Line(mostPath)), "Parent": Maybe(Both(directory, Line(mostPath))),
		"Entries": List(session.MaxListed),
	},
	reflect.TypeFor[session.DirectoryEntry](): {"Name": Both(fileName, Line(mostPath))},
	reflect.TypeFor[session.Folder](): {
		"Name": folder, "Owner": Maybe(Owner), "Agent": Line(64), "Problem": Message, "UsedBy": List(MostSessions),
	},
	reflect.TypeFor[session.FolderLink]():    {"Path": Maybe(absolute), "Inode": Free},
	reflect.TypeFor[session.FolderUsage]():   {"Files": count},
	reflect.TypeFor[session.FolderRemoval](): {"Files": count, "OfFiles": count},
	reflect.TypeFor[session.FolderUser]():    {"Name": name, "Owner": Maybe(Owner)},
}}

var (
	// fileName is "/" of the root.
	fileName = Text("the name of a file", func(text string) bool {
		return text == "/" || len(text) <= mostPath && text != "" && text != "." && text != ".." &&
			!strings.ContainsAny(text, "/\x00")
	})
	filePath = Text("an absolute path", func(text string) bool {
		return strings.HasPrefix(text, "/") && path.Clean(text) == text && len(text) <= mostPath &&
			strings.IndexByte(text, 0) < 0
	})
	// directory is a path of a machine of whatever system.
	directory = Text("the path of a directory", func(text string) bool {
		return text != "" && len(text) <= mostPath && strings.IndexByte(text, 0) < 0 && !upward(text)
	})
)
