package route

import (
	"net/http"

	"slipway/backend/api"
)

// Files are the routes to the files of a session or of a folder.
type Files struct {
	List     Route[None, api.FileListing]
	Remove   Route[None, None]
	Stat     Route[None, api.FileInfo]
	Checksum Route[None, api.Checksum]
	Read     Route[None, None]
	Zip      Route[None, None]
	Move     Route[None, None]

	MakeDirectory Route[None, None]

	Upload       Route[None, api.UploadState]
	UploadWrite  Route[None, api.UploadState]
	UploadFinish Route[api.FinishRequest, api.FileInfo]
	UploadDrop   Route[None, None]
}

// SessionFiles are the routes to the files of a running session.
func SessionFiles() Files {
	return filesBelow("", "/sessions/{id}/files",
		Param{"path", "absolute, or from /home/work on; any bytes, percent-encoded"},
		Param{"kernel", "main1 if empty"})
}

// FolderFiles are the routes to the files of a folder.
func FolderFiles() Files {
	return filesBelow("folder-", "/folders/{folder}/files",
		Param{"path", "from the folder's root on; any bytes, percent-encoded"},
		Param{"agent", "whose folder; empty: of any"})
}

// filesBelow are routes whose names begin with prefix, below a path.
func filesBelow(prefix, path string, place ...Param) Files {
	query := func(more ...Param) []Param { return append(place[:len(place):len(place)], more...) }
	key := Param{"key", "names the upload"}
	return Files{
		List: Route[None, api.FileListing]{&Endpoint{Name: prefix + "files", Pattern: "GET " + path,
			Summary: "List a directory. That of a session is listed as its user sees it.",
			Query: query(Param{"after", "the last name of the part before"},
				Param{"limit", "at most this many; 10000 are the most"})}},
		Remove: Route[None, None]{&Endpoint{Name: prefix + "file-remove", Pattern: "DELETE " + path,
			Summary: "Remove a file or an empty directory.",
			Query:   query(Param{"recursive", "1: also what is in it"}), Status: http.StatusNoContent}},
		Stat: Route[None, api.FileInfo]{&Endpoint{Name: prefix + "file-stat", Pattern: "GET " + path + "/stat",
			Summary: "Describe a file.", Query: query()}},
		Checksum: Route[None, api.Checksum]{&Endpoint{Name: prefix + "file-checksum",
			Pattern: "GET " + path + "/checksum",
			Summary: "Read the checksum of a file.", Query: query()}},
		Read: Route[None, None]{&Endpoint{Name: prefix + "file-read", Pattern: "GET " + path + "/content",
			Summary: "Read a file. Range and If-Range with its ETag resume; a lost connection to the agent is " +
				"waited for.",
			Query: query(), Stream: Bytes}},
		Zip: Route[None, None]{&Endpoint{Name: prefix + "file-zip", Pattern: "GET " + path + "/zip",
			Summary: "Read files and directories as one archive, which is made while it is sent. Links are left out.",
			Query: query(Param{"name",
				"what the archive is called, without its ending; path may be given several times"}),
			Stream: Bytes}},
		Move: Route[None, None]{&Endpoint{Name: prefix + "file-move", Pattern: "POST " + path + "/move",
			Summary: "Rename a file or directory. Nothing is replaced.", Query: query(Param{"to", "the new path"}),
			Status: http.StatusNoContent}},
		MakeDirectory: Route[None, None]{&Endpoint{Name: prefix + "directory-make",
			Pattern: "POST " + path + "/directory",
			Summary: "Make a directory.",
			Query:   query(Param{"parents", "1: also those above it; one that is there is no failure then"}),
			Status:  http.StatusNoContent}},
		Upload: Route[None, api.UploadState]{&Endpoint{Name: prefix + "upload", Pattern: "GET " + path + "/upload",
			Summary: "Show the progress of an upload. The client chooses its key, 1 to 64 letters and digits.",
			Query:   query(key)}},
		UploadWrite: Route[None, api.UploadState]{&Endpoint{Name: prefix + "upload-write",
			Pattern: "PUT " + path + "/upload",
			Summary: "Add the body's bytes to an upload, which gathers hidden until it is finished. A lost " +
				"connection to the agent is waited for.",
			Query: query(key, Param{"offset", "place of the first byte, not beyond what is there"})}},
		UploadFinish: Route[api.FinishRequest, api.FileInfo]{&Endpoint{Name: prefix + "upload-finish",
			Pattern: "POST " + path + "/upload", Summary: "Finish an upload: the file appears as a whole.",
			Query: query(key)}},
		UploadDrop: Route[None, None]{&Endpoint{Name: prefix + "upload-drop", Pattern: "DELETE " + path + "/upload",
			Summary: "Discard an upload.", Query: query(key), Status: http.StatusNoContent}},
	}
}

func (f Files) all() []described {
	return []described{f.List, f.Remove, f.Stat, f.Checksum, f.Read, f.Move, f.MakeDirectory, f.Upload, f.UploadWrite,
		f.UploadFinish, f.UploadDrop, f.Zip}
}
