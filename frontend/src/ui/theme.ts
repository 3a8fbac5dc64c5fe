import { theme as antdTheme, type ThemeConfig } from 'antd'

export type Mode = 'light' | 'dark'
type Density = 'comfortable' | 'compact'

const sans =
  "'Inter Variable', 'Pretendard Variable', -apple-system, 'Segoe UI', 'Noto Sans CJK KR', 'Noto Color Emoji', " +
  'sans-serif'
const mono = "'JetBrains Mono Variable', 'Pretendard Variable', ui-monospace, 'DejaVu Sans Mono', monospace"

// One accent, a sea blue, for the one primary action of a view. Surfaces are
// neutral with a trace of the same hue. Every text colour reaches 4.5:1 on them.
const light = {
  colorPrimary: '#0a6c8f',
  colorInfo: '#0a6c8f',
  colorLink: '#0a6485',
  colorSuccess: '#17783f',
  colorWarning: '#9a5b00',
  colorError: '#c4323a',
  colorText: '#1a2327',
  colorTextSecondary: '#526068',
  colorTextTertiary: '#5d6a72',
  colorTextQuaternary: '#98a4aa',
  colorBgLayout: '#f5f7f8',
  colorBgContainer: '#ffffff',
  colorBgElevated: '#ffffff',
  colorBorder: '#d3dce0',
  colorBorderSecondary: '#e4eaed',
  controlItemBgActive: '#edf5f8',
  controlItemBgActiveHover: '#e6f1f5',
  colorFillTertiary: 'rgba(20, 60, 75, 0.05)',
  colorFillSecondary: 'rgba(20, 60, 75, 0.08)',
  colorSuccessBg: '#e6f3ea',
  colorSuccessBorder: '#b4dbc1',
  colorWarningBg: '#fbf1dd',
  colorWarningBorder: '#ecd3a0',
  colorErrorBg: '#fcebeb',
  colorErrorBorder: '#efbcbe',
  colorInfoBg: '#e5f2f7',
  colorInfoBorder: '#b3d7e4',
  // What tells series apart, each at least 3:1 on the surface.
  purple: '#7a3fc4',
  green: '#3d8b2f',
  magenta: '#c2307c',
  geekblue: '#3a56d4',
  volcano: '#c8501b',
  lime: '#6f8a10',
}

const dark = {
  colorPrimary: '#3fb0d4',
  colorInfo: '#3fb0d4',
  colorLink: '#5cc0e0',
  colorSuccess: '#4cc27c',
  colorWarning: '#e0a33e',
  colorError: '#f0747a',
  colorText: '#e4ebee',
  colorTextSecondary: '#a3b1b8',
  colorTextTertiary: '#8a989f',
  colorTextQuaternary: '#5d6b72',
  colorBgLayout: '#0e1315',
  colorBgContainer: '#151b1e',
  colorBgElevated: '#1c2428',
  colorBorder: '#334047',
  colorBorderSecondary: '#263035',
  controlItemBgActive: '#17262d',
  controlItemBgActiveHover: '#1b2c34',
  colorFillTertiary: 'rgba(180, 220, 235, 0.06)',
  colorFillSecondary: 'rgba(180, 220, 235, 0.10)',
  colorSuccessBg: '#16291f',
  colorSuccessBorder: '#27503a',
  colorWarningBg: '#2b2415',
  colorWarningBorder: '#544521',
  colorErrorBg: '#2f1c1f',
  colorErrorBorder: '#5d3337',
  colorInfoBg: '#14272f',
  colorInfoBorder: '#25495a',
  purple: '#a987ec',
  green: '#6cc25b',
  magenta: '#ec7ab3',
  geekblue: '#8196f5',
  volcano: '#ef8a5c',
  lime: '#b5cc4a',
}

// Compact takes air, never letters: antd's own compact look shrinks the text.
const tight = { controlHeight: 28, padding: 12, paddingLG: 16, paddingSM: 8, margin: 12, marginLG: 16 }

/** The look of everything, as antd tokens. calm leaves all motion out. */
export function themeOf(mode: Mode, density: Density, calm: boolean): ThemeConfig {
  const colours = mode === 'dark' ? dark : light
  const base = mode === 'dark' ? antdTheme.darkAlgorithm : antdTheme.defaultAlgorithm
  return {
    algorithm: base,
    cssVar: { key: 'slipway' },
    hashed: false,
    token: {
      ...colours,
      colorTextPlaceholder: colours.colorTextTertiary,
      fontFamily: sans,
      fontFamilyCode: mono,
      fontSize: 13,
      borderRadius: 6,
      wireframe: false,
      ...(density === 'compact' ? tight : {}),
      colorBgMask: mode === 'dark' ? 'rgba(0, 0, 0, 0.5)' : 'rgba(12, 32, 42, 0.32)',
      motion: !calm,
      motionDurationFast: '0.08s',
      motionDurationMid: '0.12s',
      motionDurationSlow: '0.14s',
    },
    components: {
      Button: {
        primaryShadow: 'none',
        defaultShadow: 'none',
        dangerShadow: 'none',
        primaryColor: mode === 'dark' ? '#06222c' : '#ffffff',
        dangerColor: mode === 'dark' ? '#2a0b0d' : '#ffffff',
        fontWeight: 500,
      },
      Table: {
        headerBg: colours.colorBgContainer,
        headerColor: colours.colorTextSecondary,
        headerSplitColor: 'transparent',
        headerSortActiveBg: colours.colorBgContainer,
        headerSortHoverBg: colours.colorFillTertiary,
        bodySortBg: 'transparent',
        rowHoverBg: mode === 'dark' ? '#1a2225' : '#f6f9fa',
        cellPaddingBlockMD: density === 'compact' ? 4 : 8,
        cellPaddingInlineMD: 12,
        cellPaddingBlockSM: 6,
      },
      Tabs: { horizontalItemPadding: '8px 0', horizontalItemGutter: 24, titleFontSize: 13 },
      Segmented: { trackPadding: 2, itemSelectedBg: mode === 'dark' ? '#2a353b' : '#ffffff' },
      Tooltip: { colorBgSpotlight: mode === 'dark' ? '#2a353b' : '#24323a' },
      Drawer: { paddingLG: 20 },
      Slider: {
        railBg: colours.colorFillSecondary,
        railHoverBg: colours.colorFillSecondary,
        trackBg: colours.colorPrimary,
        trackHoverBg: colours.colorPrimary,
        handleColor: colours.colorPrimary,
        dotBorderColor: colours.colorBorder,
        dotActiveBorderColor: colours.colorPrimary,
      },
      Modal: { titleFontSize: 15 },
    },
  }
}
