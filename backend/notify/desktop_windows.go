package notify

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// script shows a toast under the name Slipway, which the registry has for programs without a package. The texts are
// variables and not part of it, because it is code. See the ToastGeneric template of Windows.UI.Notifications.
const script = `$ErrorActionPreference = 'Stop'
$key = 'HKCU:\Software\Classes\AppUserModelId\Slipway'
if (-not (Test-Path $key)) { [void](New-Item $key -Force) }
Set-ItemProperty $key DisplayName Slipway
[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
[void][Windows.Data.Xml.Dom.XmlDocument, Windows.Data.Xml.Dom, ContentType = WindowsRuntime]
$toast = New-Object Windows.Data.Xml.Dom.XmlDocument
$toast.LoadXml('<toast><visual><binding template=''ToastGeneric''><text/><text/></binding></visual></toast>')
$texts = $toast.GetElementsByTagName('text')
[void]$texts.Item(0).AppendChild($toast.CreateTextNode($env:SLIPWAY_NOTICE_TITLE))
[void]$texts.Item(1).AppendChild($toast.CreateTextNode($env:SLIPWAY_NOTICE_TEXT))
$shower = [Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier('Slipway')
$shower.Show((New-Object Windows.UI.Notifications.ToastNotification $toast))`

// command shows a notice by Windows PowerShell, which every Windows 10 and 11 has.
func command(ctx context.Context, n Notice) *exec.Cmd {
	shell := filepath.Join(cmp.Or(os.Getenv("SystemRoot"), `C:\Windows`), "System32", "WindowsPowerShell", "v1.0",
		"powershell.exe")
	cmd := exec.CommandContext(ctx, shell, "-NoProfile", "-NonInteractive", "-Command", script)
	cmd.Env = append(os.Environ(), "SLIPWAY_NOTICE_TITLE="+n.Title, "SLIPWAY_NOTICE_TEXT="+n.Text)
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	return cmd
}
