package session

import "cmp"

// Class explains a code: what causes it in general, what a person can do about
// it, and the HTTP status that the API answers with, 0 for what is no error.
type Class struct {
	Code          Code
	Status        int
	Cause, Remedy string
}

// Errors is the table of all error codes, by domain.
var Errors = []Class{
	{CodeAgentNotFound, 404, "There is no machine, agent or paired client of that name.",
		"List them with slipway agent ls and check the name."},
	{CodeAgentUnavailable, 503, "The machine's agent is not connected, so the outcome of the call is unknown.",
		"Wait for the connection, or run slipway agent reconnect."},
	{CodeAgentTimeout, 504, "The agent did not finish in time.",
		"Try again; if it happens again, read the agent's log."},
	{CodeAgentBusy, 409, "Too many calls to the agent are in progress.", "Try again in a moment."},
	{CodeAgentConflict, 409, "The agent, or its entry in the list of machines, is not in a state that allows this.",
		"Check its state with slipway agent ls, then try again."},
	{CodeAgentForbidden, 403, "Your role does not allow this on that machine.", "Ask an admin of the machine."},
	{CodeAgentInvalid, 422, "The request to the agent, or an entry about a machine, is not valid.",
		"Correct the value; if the two sides differ in version, upgrade the older one."},
	{CodeAgentInternal, 500, "Internal agent error.", "Read the agent's log."},
	{CodeAgentUnsupported, 409, "This agent does not offer the call: it is too old, or the machine is not shared.",
		"Upgrade the agent, or run the command on its own machine."},
	{CodeAgentBroken, 409, "A stream broke on the agent's machine.", "Try again."},
	{CodeAgentReply, 422, "A machine or session sent invalid data.",
		"Use the same version on both sides; do not trust the machine until you know why."},
	{CodeUnreachable, 503,
		"The machine cannot be reached: nothing answers at its address, or the connection was closed.",
		"Check that it is switched on, that Slipway runs there, and the network or VPN of this computer."},
	{CodeConnectAuth, 409, "The machine did not accept the login, or the login was cancelled.",
		"Check the user name and that ssh to this host works in a terminal."},
	{CodeConnectAsks, 409, "The machine asks for a password, a passphrase or a one-time code.",
		"Reconnect the machine and answer the question."},
	{CodeConnectHostKey, 409, "The host key is unknown, or differs from the known one.",
		"Compare the fingerprint with the machine's administrator before you confirm it."},
	{CodeNotPaired, 409, "The machine does not know this computer, or no longer.",
		"Pair it: slipway agent pair on that machine shows a code."},
	{CodeConnectVersion, 409,
		"The two sides have no common protocol: one is too old, or the other is not a Slipway agent.",
		"Check the address, and upgrade the older side."},
	{CodeConnectInvalid, 422, "The address of the machine, or ssh on this computer, is not set up correctly.",
		"Correct the address or the ssh configuration, and check that the OpenSSH client is installed."},
	{CodeConnectForbidden, 403, "The agent of this machine cannot be reached from a container or sandbox.",
		"Use a terminal of the machine itself."},
	{CodePairCode, 409, "The pairing code is wrong.",
		"Type the ten digits that slipway agent pair shows on the machine."},
	{CodePairExpired, 409,
		"The pairing code was not checked: it is expired or already used, or another was tried just now.",
		"Wait a moment, or show a new code with slipway agent pair."},
	{CodePairRefused, 409, "The machine refuses to pair.",
		"Wait a while, then show a new code with slipway agent pair."},
	{CodePairUnavailable, 503, "The agent accepts no paired computers.",
		"Start it so that it listens: slipway agent start --listen ADDRESS."},
	{CodeInstallFailed, 409, "Slipway could not be installed, upgraded or removed on the machine.",
		"Read the step that failed; the earlier version stays in use."},

	{CodeAppNotFound, 404, "The session has no such app.", "List its apps with slipway apps."},
	{CodeAppConflict, 409, "The app is not running, was stopped, or its port is taken.",
		"Start the app again, or close what uses the port."},
	{CodeAppUnavailable, 503, "The app cannot be reached at the moment.",
		"Wait until the session and its machine are reachable."},
	{CodeAppNotInstalled, 409, "The image does not contain the app.",
		"Install it in the session, or choose another image."},
	{CodeAppExited, 502, "The app ended before it answered.", "Read the app's output."},
	{CodeAppTimeout, 504, "The app does not answer, or does not stop, in time.", "Wait, or restart the app."},

	{CodeUsage, 422, "The command line is wrong.", "Add --help to the command for its usage."},
	{CodeCommandFailed, 409, "The command failed.", "Correct what the message names and run it again."},

	{CodeDeviceNotFound, 404, "The machine has no such device.", "List its devices with slipway gpu."},

	{CodeDiskFull, 507, "A disk is full, or its folder cannot be written.",
		"Free space there, for example with slipway image prune, and try again."},

	{CodeEngineUnavailable, 503, "The container engine does not answer.",
		"Start it, and check that your user may use it: slipway doctor."},
	{CodeEngineTimeout, 504, "The container engine did not finish in time.",
		"Try again; if it happens again, check the load of the machine and its disk."},
	{CodeEngineConflict, 409, "The container engine has something of that name, or it is in use.",
		"Remove what is in the way, then try again."},
	{CodeEngineInvalid, 422, "The container engine refuses the request: a value, a path or a permission is wrong.",
		"Correct the session's image, mounts or settings."},
	{CodeEngineInternal, 500, "The container engine failed.", "Read the message, and the log of the engine."},
	{CodeNoContainer, 404, "The container no longer exists.", "Launch the session again."},
	{CodeNoImage, 404, "The image is not on this machine.", "Pull it first, or check its name."},
	{CodeEngineUnsupported, 409, "This machine or its engine cannot run the image or the session.",
		"Choose another image or machine."},
	{CodeDevicesTaken, 409, "Another Slipway took the devices first.",
		"Nothing to do: the session waits for them again."},
	{CodeAttachFailed, 409, "The container engine cannot attach devices.",
		"slipway doctor shows every way that was tried, with its remedy."},
	{CodeGuestExited, 502, "The container ended before Slipway could reach it.", "Read the session's log."},
	{CodeStartFailed, 409, "The container could not be started.",
		"Read the reason, and check the image and its startup command."},
	{CodePullNotFound, 404, "The registry has no such image.",
		"Check the name and tag of the image, and whether it needs a login."},
	{CodePullForbidden, 403, "The registry refuses the image, or limits pulls.",
		"Log in with docker login, or try again later."},
	{CodePullUnavailable, 503, "The registry cannot be reached.",
		"Check the network and the registry's address, then pull again."},

	{CodeFileExists, 409, "A file or directory of that name exists.", "Choose another name, or replace it."},
	{CodeFileConflict, 409,
		"The file or directory is in use, not empty, of the wrong kind, or not where an upload stopped.",
		"Look at what is there, then try again."},
	{CodeFileChanged, 409, "The file changed meanwhile, or arrived with other content.", "Read it again."},
	{CodeFileFailed, 409, "The file system reports an error.", "Check the disk and the permissions."},
	{CodeFileForbidden, 403, "You may not read or change this file, directory or folder.", "Check its permissions."},
	{CodeFileInvalid, 422, "The path or the request about a file is not valid.", "Correct the path."},
	{CodeFileNotFound, 404, "There is no such file or directory.", "Check the path."},

	{CodeFolderNotFound, 404, "There is no such folder.", "List the folders with slipway folder ls."},
	{CodeFolderExists, 409, "A folder of that name exists.", "Choose another name."},
	{CodeFolderConflict, 409, "The folder is in use, in the trash, ambiguous, or one too many.",
		"Stop the sessions that use it, restore it, or name its machine."},
	{CodeFolderChanged, 409, "The directory of the folder was replaced by another one.",
		"Put the directory back, or create the folder again."},

	{CodeGuestInvalid, 422, "The session's helper does not know the call, or its arguments are wrong.",
		"Start the session again with this version of Slipway."},
	{CodeGuestInternal, 500, "Internal error of the session's helper.",
		"Start the session again; if it happens again, read its log."},
	{CodeGuestVersion, 409, "The session was started by another version of Slipway.", "Start the session again."},

	{CodeImageExists, 409, "An image of that name exists.", "Choose another name."},
	{CodeImageConflict, 409,
		"The image is in use, arriving, or being created; or the session cannot become an image now.",
		"Wait, or end the sessions that use it."},
	{CodeImageInvalid, 422, "The name or the content of the image is not valid.",
		"Correct the name, or send the image again."},
	{CodeImageCorrupt, 409, "A part of the image arrived damaged.", "Nothing to do: it is sent again."},
	{CodeImageUnexpected, 404, "The machine does not expect this image.", "Send the image again."},
	{CodeImageReplaced, 409, "Another transfer of the same image took over.",
		"Nothing to do: the image arrives once."},

	{CodeOperationNotFound, 404, "There is no such operation.", "It may have ended; look at its result."},
	{CodeOperationConflict, 409, "The operation is not waiting for this answer, or too many are in progress.",
		"Look at its state again."},
	{CodeOperationCancelled, 409, "The operation was cancelled.", "Start it again if you still need it."},
	{CodeOperationFailed, 409, "The operation failed.", "Read the step that failed, and try again."},
	{CodeOperationTimeout, 504, "It took too long.", "Try again."},

	{CodeProcessNotFound, 404, "The session has no such program.",
		"Check the command, and that the image contains it."},
	{CodeProcessForbidden, 403, "The program cannot be executed.", "Check its permissions in the image."},

	{CodeRecipeInvalid, 422, "The recipe or link is not valid, or lacks a secret.",
		"Correct the field that the message names."},
	{CodeRecipeNotFound, 404, "There is no such preset, recent launch or recipe file.",
		"List them with slipway preset ls or on the Launcher page."},

	{CodeRequestInvalid, 400, "The body or query of the request is not valid.", "Compare it with build/docs/api.md."},
	{CodeTooLarge, 413, "The file, request or answer is larger than allowed.", "Send or ask for less at a time."},
	{CodeNoRoute, 404, "The API has no such path.", "build/docs/api.md lists all of them."},
	{CodeWrongMethod, 405, "The path does not offer this method, or needs a WebSocket.",
		"build/docs/api.md lists what it offers."},
	{CodeLoginRequired, 401, "You are not logged in here.", "Open the address that slipway open prints."},
	{CodeOriginForbidden, 403, "The request does not come from Slipway's own page, address or user.",
		"Use Slipway as the user who started it."},
	{CodeRequestCancelled, 503, "The request was cancelled.", "Try again."},

	{CodeServerInternal, 500, "Internal error.", "Read the log; slipway doctor prints its path."},
	{CodeServerUnavailable, 503, "This Slipway does not offer that, or is shutting down.",
		"Use the desktop application or slipway serve."},
	{CodeServerAnswer, 502, "The answer is not one of Slipway's.",
		"Check what listens at that address, and that both sides have the same version."},
	{CodeServerUnreachable, 503, "Slipway is not running, or does not answer.",
		"Start it with slipway serve; slipway doctor shows why it does not start."},
	{CodeListenConflict, 409, "Slipway cannot listen on the port.",
		"Choose another port, or end the program that uses it."},
	{CodeStartConflict, 409, "Another Slipway uses this folder.", "Use that one, or end it first."},
	{CodeServerFailed, 409, "Slipway could not be started.",
		"Read the reason, and the log file that the message names."},
	{CodeServerInvalid, 422, "A variable, argument or file that Slipway starts with is not valid.",
		"Correct the value that the message names."},

	{CodeInvalid, 422, "A field of the session is wrong.", "Correct the fields that are listed."},
	{CodeNameTaken, 409, "Another live session of the owner has that name.",
		"Choose another name, or end that session."},
	{CodeMountForbidden, 403, "The directory must not be mounted.", "Choose a directory that your user owns."},
	{CodeTooManySessions, 409, "The owner has as many sessions as allowed.", "End or remove some of them."},
	{CodeSessionNotFound, 404, "There is no such session.", "slipway ps -a lists all of them."},
	{CodeSessionAmbiguous, 409, "Several sessions match the name or id.", "Use the full id."},
	{CodeSessionConflict, 409, "The status of the session does not allow this.",
		"Check its status with slipway show."},
	{CodeSessionInvalid, 422, "A value for the session, its terminals or its apps is not valid.",
		"Correct the value."},
	{CodeUseNotFound, 404, "The session has no such kernel or terminal.", "slipway show lists its kernels."},
	{CodeUseTooMany, 409, "The session has as many terminals, apps or connections as allowed.",
		"Close some of them."},
	{CodeSessionUnavailable, 503, "The session cannot be reached at the moment.",
		"Wait: the connection is restored automatically."},
	{CodeStepFailed, 409, "A step of starting or ending the session failed.", "Read the reason in its history."},

	{CodeSettingsBroken, 422, "The settings file or an environment file is wrong or cannot be read.",
		"Correct the file, or remove it."},
	{CodeSettingsInvalid, 422, "The value of the setting or preset is not valid.",
		"slipway settings lists what is allowed."},
	{CodeSettingsConflict, 409,
		"The setting or preset cannot be changed: it is built in, its name is taken, or its file is broken.",
		"Choose another name, or correct the file."},
	{CodeSettingsFailed, 409, "The settings could not be stored.",
		"Check the permissions and the free space of their folder."},

	{CodeSSHConflict, 409, "The session shows another host key than before.", "Do not log in until you know why."},
	{CodeSSHFailed, 409, "ssh to the session does not work.",
		"Run the test on the session's page, or use its terminal."},
	{CodeSSHInvalid, 422, "A key or id for ssh is not valid.", "Use a public key as in authorized_keys."},

	{CodeStoreFailed, 409,
		"The session store cannot be opened: it is damaged, newer than this Slipway, or not accessible.",
		"Follow the hint before you move the file away."},
	{CodeStoreLocked, 409, "Another Slipway is using the session store.", "Use that one, or end it first."},
	{CodeStoreRead, 409, "A record of the session store cannot be read.",
		"Use the version of Slipway that wrote it, and read Slipway's log."},
	{CodeStoreConflict, 409, "The record changed meanwhile.", "Try again."},
	{CodeStoreWrite, 409, "The change could not be stored.", "Check the disk that holds Slipway's files."},
	{CodeStoreTransition, 409, "A session cannot go from one status to the other.",
		"This is an error in Slipway; report it with its log."},
}

// class is that of the code in the tables, empty where they do not have it.
func (c Code) class() Class {
	for _, table := range [][]Class{Errors, Notices} {
		for _, class := range table {
			if class.Code == c {
				return class
			}
		}
	}
	return Class{}
}

// Known reports whether the code is one of [Errors] or [Notices]. Records and
// agents of older versions have others.
func (c Code) Known() bool { return c.class().Code != "" }

// Status is the HTTP status of an error of this code. One that the table does
// not have says that the state of things forbids it, 409.
func (c Code) Status() int { return cmp.Or(c.class().Status, 409) }
