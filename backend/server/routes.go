package server

import (
	"io"
	"maps"
	"net/http"

	"slipway/backend/api"
)

// answer handles an endpoint whose result is JSON or nothing.
type answer func(r *http.Request) (any, error)

// streamed handles an endpoint that writes its own answer. An error it returns
// is written as a Problem, so it returns one only before it has written.
type streamed func(w http.ResponseWriter, r *http.Request) error

// allAnswers are the answers in their parts, which have no name in common.
func (s *Server) allAnswers() []map[string]answer {
	return []map[string]answer{s.answers(), s.insideAnswers(), s.agentAnswers(), s.folderAnswers(), s.fileAnswers(),
		s.imageAnswers()}
}

func (s *Server) answers() map[string]answer {
	return map[string]answer{
		"version":         s.getVersion,
		"demo":            s.getDemo,
		"demo-lid":        s.setLid,
		"demo-start":      s.startDemo,
		"login-link":      s.createLoginLink,
		"login-pass":      s.createPass,
		"doctor":          s.runDoctor,
		"machines":        s.listMachines,
		"directories":     s.listDirectories,
		"presets":         s.listPresets,
		"preset-create":   s.createPreset,
		"preset-update":   s.updatePreset,
		"preset-delete":   s.deletePreset,
		"devices":         s.listDevices,
		"device-history":  s.deviceHistory,
		"resources":       s.listResources,
		"accounts":        s.accounts,
		"queue":           s.queue,
		"launch-many":     s.launchMany,
		"keep":            s.keep,
		"idle-simulation": s.simulateIdle,
		"sessions":        s.listSessions,
		"launch":          s.launch,
		"preview":         s.preview,
		"session":         s.getSession,
		"session-update":  s.updateSession,
		"terminate":       s.terminate,
		"history":         s.history,
		"usage":           s.usage,
		"recents":         s.listRecents,
		"recent-update":   s.updateRecent,
		"recent-delete":   s.deleteRecent,
		"recent-recipe":   s.recentRecipe,
		"session-recipe":  s.sessionRecipe,
		"recipe-read":     s.readRecipe,
		"recipe-compare":  s.compareRecipes,
		"link-read":       s.readLink,
		"settings":        s.getSettings,
		"settings-update": s.updateSettings,
		"log":             s.getLog,
		"diagnostics":     s.getDiagnostics,
		"notifier":        s.getNotifier,
		"notifier-try":    s.tryNotice,
		"settings-file":   s.settingsFile,
		"setting-update":  s.updateSetting,
		"window-show":     s.showWindow,
		"shutdown":        s.stop,

		"operations":       s.listOperations,
		"operation":        s.getOperation,
		"operation-answer": s.answerOperation,
		"operation-cancel": s.cancelOperation,
	}
}

// insideAnswers are those of what is inside a running session.
func (s *Server) insideAnswers() map[string]answer {
	return map[string]answer{
		"terminals":       s.listTerminals,
		"terminal-open":   s.openTerminal,
		"terminal-close":  s.closeTerminal,
		"terminal-search": s.searchTerminals,
		"apps":            s.listApps,
		"app-open":        s.openApp,
		"app-stop":        s.stopApp,
		"app-door-close":  s.closeDoor,
		"ssh-setup":       s.sshSetup,
		"ssh-update":      s.updateSSH,
		"ssh-access":      s.sshAccess,
		"ssh-test":        s.testSSH,
	}
}

// agentAnswers are those of agents and of those who rule them.
func (s *Server) agentAnswers() map[string]answer {
	return map[string]answer{
		"agents":            s.listAgents,
		"agent":             s.getAgent,
		"agent-add":         s.addAgent,
		"agent-update":      s.updateAgent,
		"agent-remove":      s.removeAgent,
		"agent-probe":       s.probeAgent,
		"agent-upgrade":     s.upgradeAgent,
		"agent-reconnect":   s.reconnectAgent,
		"agent-answer":      s.answerAgent,
		"paired-devices":    s.pairedDevices,
		"device-revoke":     s.revokeDevice,
		"pair-code":         s.pairCode,
		"agent-audit":       s.audit,
		"agent-limits":      s.limits,
		"agent-limit-set":   s.setLimit,
		"agent-limit-unset": s.unsetLimit,
		"agent-rotate":      s.rotateAgent,
		"key-rotate":        s.rotateKey,
	}
}

// imageAnswers are those of images.
func (s *Server) imageAnswers() map[string]answer {
	return map[string]answer{
		"images":           s.listImages,
		"environments":     s.listEnvironments,
		"environment-file": s.environmentFile,
		"image-send":       s.sendImage,
		"image-pull":       s.pullImage,
		"image-remove":     s.removeImages,
		"image-disk":       s.imageDisk,
		"commit":           s.commit,
	}
}

// folderAnswers are those of folders.
func (s *Server) folderAnswers() map[string]answer {
	return map[string]answer{
		"folders":            s.listFolders,
		"folder":             s.getFolder,
		"folder-create":      s.createFolder,
		"folder-update":      s.updateFolder,
		"folder-trash":       s.trashFolder,
		"folder-restore":     s.restoreFolder,
		"folder-delete":      s.deleteFolder,
		"folder-delete-stop": s.stopDeletingFolder,
	}
}

// ofFolder begins the names of routes to a folder's files. The rest is that of
// the route to a session's, and so is the handler.
const ofFolder = "folder-"

// fileAnswers are those of files, of sessions and of folders.
func (s *Server) fileAnswers() map[string]answer {
	return alsoOfFolders(map[string]answer{
		"files":          s.listFiles,
		"file-stat":      s.statFile,
		"file-checksum":  s.checksumFile,
		"upload":         s.uploadOffset,
		"upload-write":   s.writeUpload,
		"upload-finish":  s.finishUpload,
		"upload-drop":    s.dropUpload,
		"directory-make": s.makeDirectory,
		"file-move":      s.moveFile,
		"file-remove":    s.removeFile,
	})
}

// alsoOfFolders adds the routes to the files of folders to those of sessions.
func alsoOfFolders[H any](handlers map[string]H) map[string]H {
	all := maps.Clone(handlers)
	for name, handle := range handlers {
		all[ofFolder+name] = handle
	}
	return all
}

func (s *Server) streams() map[string]streamed {
	all := alsoOfFolders(map[string]streamed{
		"file-read": s.readFile,
		"file-zip":  s.zipFiles,
	})
	maps.Copy(all, map[string]streamed{
		"openapi":         s.openAPI,
		"events":          s.events,
		"accounts-csv":    s.accountsCSV,
		"logs":            s.logs,
		"terminal-attach": s.attachTerminal,
		"terminal-output": s.terminalOutput,
		"exec":            s.exec,
		"ssh-stream":      s.sshStream,
	})
	return all
}

// mount gives every route of package api its handler. A route without one
// answers as not found; a test holds that there is none.
func (s *Server) mount() {
	answers, streams := map[string]answer{}, s.streams()
	for _, part := range s.allAnswers() {
		maps.Copy(answers, part)
	}
	for _, route := range api.Routes {
		pattern := route.Method + " " + route.Path
		if handle, ok := answers[route.Name]; ok {
			s.mux.Handle(pattern, s.answering(route, handle))
		} else if handle, ok := streams[route.Name]; ok {
			s.mux.Handle(pattern, s.streaming(handle))
		}
	}
}

func (s *Server) answering(route api.Route, handle answer) http.Handler {
	status := route.Status
	if status == 0 {
		status = http.StatusOK
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, err := handle(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case value == nil:
			w.WriteHeader(status)
		default:
			writeJSON(w, status, value)
		}
	})
}

func (s *Server) streaming(handle streamed) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, api.OpenAPI) // a client that is gone needs no answer
	return nil
}

// serveAPI answers under /api/, with a Problem also where there is nothing.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.mux.Handler(r); pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	allowed := ""
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allowed += method + ", "
		}
	}
	if allowed != "" {
		w.Header().Set("Allow", allowed[:len(allowed)-2])
		s.fail(w, r, wrongMethod(r.Method, allowed[:len(allowed)-2]))
		return
	}
	s.fail(w, r, noSuchPath(r.URL.Path))
}
