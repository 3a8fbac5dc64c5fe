; An installer for one user, without administrator rights: programs, start menu, links of the scheme
; slipway: and an entry among the installed apps. Uninstalling leaves a person's data.
Unicode true
Target amd64-unicode
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Slipway"
Name "Slipway"
OutFile "${OUTPUT}"
Icon "${ICON}"
UninstallIcon "${ICON}"
InstallDir "$LOCALAPPDATA\Programs\Slipway"
RequestExecutionLevel user
SetCompressor zlib
Page directory
Page instfiles
UninstPage uninstConfirm
UninstPage instfiles

Section
  SetOutPath "$INSTDIR"
  File "${STAGE}\*"
  CreateShortcut "$SMPROGRAMS\Slipway.lnk" "$INSTDIR\Slipway-Desktop.exe"
  WriteRegStr HKCU "Software\Classes\slipway" "" "URL:Slipway"
  WriteRegStr HKCU "Software\Classes\slipway" "URL Protocol" ""
  WriteRegStr HKCU "Software\Classes\slipway\shell\open\command" "" '"$INSTDIR\Slipway-Desktop.exe" "%1"'
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Slipway"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\Slipway-Desktop.exe"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteUninstaller "$INSTDIR\uninstall.exe"
SectionEnd

Section Uninstall
  Delete "$INSTDIR\slipway.exe"
  Delete "$INSTDIR\Slipway-Desktop.exe"
  Delete "$INSTDIR\slipway-linux-amd64"
  Delete "$INSTDIR\slipway-linux-arm64"
  Delete "$INSTDIR\copyright.txt"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Slipway.lnk"
  DeleteRegKey HKCU "Software\Classes\slipway"
  DeleteRegKey HKCU "Software\Classes\AppUserModelId\Slipway"
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegValue HKCU "Software\Microsoft\Windows\CurrentVersion\Run" "Slipway"
SectionEnd
