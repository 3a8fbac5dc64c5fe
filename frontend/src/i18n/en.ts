import agents from './en/agents.json'
import apps from './en/apps.json'
import common from './en/common.json'
import gpus from './en/gpus.json'
import history from './en/history.json'
import launcher from './en/launcher.json'
import notifications from './en/notifications.json'
import session from './en/session.json'
import sessions from './en/sessions.json'
import settings from './en/settings.json'
import terminal from './en/terminal.json'
import usage from './en/usage.json'

export const en = { agents, apps, common, gpus, history, launcher, notifications, session, sessions, settings, terminal, usage }
