package route

import "slices"

// described is a [Route] of any types.
type described interface{ describe() Description }

// All returns the descriptions of all routes, in the order of the reference.
func All() []Description {
	routes := slices.Concat([]described{
		Version, Demo, DemoLid, DemoStart, OpenAPI, LoginLink, LoginPass, Doctor, Events, Machines, Agents, AgentAdd,
		Agent, AgentUpdate, AgentRemove, AgentProbe, AgentUpgrade, AgentReconnect, AgentAnswer, PairedClients,
		ClientRevoke, AgentAudit, AgentLimits, AgentLimitSet, AgentLimitUnset, PairCode, AgentRotate, KeyRotate,
		Operations, Operation, OperationAnswer, OperationCancel, Directories, ImageSend, Images, ImagePull,
		ImageRemove, ImageDisk, Commit, Environments, EnvironmentFile, Presets, PresetCreate, PresetUpdate,
		PresetDelete, Devices, DeviceHistory, Resources, Accounts, AccountsCSV, Queue, Sessions, Launch, LaunchMany,
		Preview, Session, SessionUpdate, Keep, IdleSimulation, Terminate, History, Logs, Usage, Terminals,
		TerminalOpen, TerminalClose, TerminalSearch, TerminalOutput, TerminalAttach, Exec, Apps, AppOpen,
		AppDoorClose, AppStop, SSHSetup, SSHUpdate, SSHAccess, SSHTest, SSHStream,
	}, SessionFiles().all(), []described{
		Folders, FolderCreate, Folder, FolderUpdate, FolderTrash, FolderRestore, FolderDelete, FolderDeleteStop,
	}, FolderFiles().all(), []described{
		Recents, RecentUpdate, RecentDelete, RecentRecipe, SessionRecipe, RecipeRead, RecipeCompare, LinkRead,
		Settings, SettingsUpdate, SettingsFile, SettingUpdate, Log, Diagnostics, Notifier, NotifierTry, WindowShow,
		Shutdown,
	})
	all := make([]Description, len(routes))
	for i, one := range routes {
		all[i] = one.describe()
	}
	return all
}
