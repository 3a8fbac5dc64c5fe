// Package folder holds data folders on the disk of an agent's machine. A [Disk] makes, opens, measures and removes
// them; whatever is done inside of one goes through an [os.Root], so that no path, link or race leads out of it. A
// [Counter] counts in the background what they hold. Who owns a folder and what state it is in is for the agent to
// keep.
package folder
