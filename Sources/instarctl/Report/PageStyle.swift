/// How the page of a fleet report looks, in light and dark.
enum PageStyle {
  /// The style sheet. It names no font, image or file from outside the page.
  static let sheet = """
    :root{--ground:#f4f6f8;--card:#fff;--ink:#18212c;--soft:#5c6878;--line:#e2e7ed;--good:#1b8a5a;--warning:#c98a12;\
    --bad:#cf3f3f;--busy:#7b61c9;--other:#3f7cc4;--tint:#f0f3f7}
    @media (prefers-color-scheme:dark){:root{--ground:#10151b;--card:#182029;--ink:#e7ecf2;--soft:#97a4b4;--line:#2a3541;\
    --good:#3fc48a;--warning:#e8b04a;--bad:#f27676;--busy:#ab95f0;--other:#6ca6ea;--tint:#202a35}}
    *{box-sizing:border-box}
    body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",\
    "Noto Sans","DejaVu Sans",sans-serif}
    header,main,footer{max-width:1240px;margin:0 auto;padding:0 20px}
    header{display:flex;flex-wrap:wrap;gap:12px;align-items:center;justify-content:space-between;padding-top:28px}
    h1{font-size:26px;line-height:1.2;margin:0;letter-spacing:-.01em}
    h2{font-size:15px;margin:0;font-weight:650;overflow-wrap:anywhere}
    p{margin:0}
    code{font:12.5px/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
    .sub,.note{color:var(--soft);font-size:13px}
    main{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px;padding-top:20px;\
    grid-auto-flow:dense}
    main>.notices,main>.tiles,.wide{grid-column:1/-1}
    .badge{border:1px solid currentColor;border-radius:99px;padding:3px 12px;font-size:13px;font-weight:600;color:var(--soft)}
    .badge.good{color:var(--good)}.badge.warning{color:var(--warning)}
    .notice{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--other);border-radius:8px;\
    padding:9px 14px;margin-bottom:8px;overflow-wrap:anywhere}
    .notice.bad{border-left-color:var(--bad)}.notice.warning{border-left-color:var(--warning)}
    .notice.muted{border-left-color:var(--soft)}
    .notice code{background:var(--tint);border-radius:5px;padding:2px 6px;margin-left:4px}
    .tiles{display:flex;flex-wrap:wrap;gap:12px}
    .tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px}
    .tile{flex:1 1 100px;padding:14px 12px}
    .tile .name{font-size:13px;color:var(--soft);font-weight:600}
    .tile .value{font-size:23px;font-weight:680;line-height:1.3;letter-spacing:-.01em;white-space:nowrap;\
    font-variant-numeric:tabular-nums}
    .tile.good .value{color:var(--good)}.tile.warning .value{color:var(--warning)}.tile.bad .value{color:var(--bad)}
    .tile .note{line-height:1.3}
    .head{display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline;justify-content:space-between;margin-bottom:8px}
    .key{display:inline-flex;align-items:center;gap:6px;margin-right:12px;font-size:13px;color:var(--soft);white-space:nowrap}
    .key:last-child{margin-right:0}
    .key i{width:10px;height:10px;border-radius:3px}
    i.good,.stack .good{background:var(--good)}i.warning,.stack .warning{background:var(--warning)}
    i.bad,.stack .bad{background:var(--bad)}i.busy,.stack .busy{background:var(--busy)}
    i.other,.stack .other{background:var(--other)}
    .states+.states{margin-top:14px}
    .states .head{margin-bottom:4px}
    .stack{display:flex;gap:2px;height:16px;border-radius:6px;overflow:hidden;margin-bottom:4px}
    .stack span{min-width:3px}
    svg.plot{display:block;width:100%;height:auto}
    .plot .grid{stroke:var(--line)}
    .plot .tick{fill:var(--soft);font-size:11px}
    .plot .note{fill:var(--ink);font-size:11px;paint-order:stroke;stroke:var(--card);stroke-width:3px}
    .plot .mark{stroke:var(--soft);stroke-dasharray:3 3}
    .plot .good{fill:var(--good)}.plot .warning{fill:var(--warning)}.plot .bad{fill:var(--bad)}
    .plot .busy{fill:var(--busy)}.plot .other{fill:var(--other)}
    .plot .dot{fill-opacity:.6;stroke:var(--card);stroke-width:.6}
    .plot path.line{fill:none;stroke-width:2;stroke-linejoin:round}
    .plot path.line.good{stroke:var(--good)}.plot path.line.bad{stroke:var(--bad)}
    .plot path.area{fill-opacity:.16}
    .failure{border-top:1px solid var(--line);padding:8px 0}
    .failure summary{display:flex;flex-wrap:wrap;gap:2px 12px;align-items:baseline;cursor:pointer;list-style:none}
    .failure summary::before{content:"▸";color:var(--soft)}
    .failure[open] summary::before{content:"▾"}
    .failure .count{font-weight:680;white-space:nowrap}
    .failure.bad .count{color:var(--bad)}
    .failure .cause{flex:1 1 320px;overflow-wrap:anywhere;white-space:pre-wrap}
    .failure .code{font:12.5px ui-monospace,"DejaVu Sans Mono",monospace;background:var(--tint);border-radius:5px;padding:1px 7px}
    .columns{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:8px 24px;padding:6px 0 4px 22px;font-size:13.5px}
    dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 12px;margin:0;align-content:start}
    dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
    ul{margin:0;padding:0;list-style:none}
    .scroll{overflow-x:auto}
    table{border-collapse:collapse;width:100%;font-size:13.5px}
    th{text-align:left;color:var(--soft);font-weight:600}
    th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
    tbody tr:last-child td{border-bottom:0}
    td.path{width:45%;min-width:220px}
    .number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
    .time{white-space:nowrap;font-variant-numeric:tabular-nums}
    footer{color:var(--soft);font-size:13px;padding-top:18px;padding-bottom:32px}
    @media (max-width:860px){.card{overflow-x:auto}.wide .plot{min-width:700px}main{grid-template-columns:minmax(0,1fr)}\
    .columns{grid-template-columns:minmax(0,1fr)}}
    @media print{body{background:#fff}.card,.tile{break-inside:avoid}}
    """
}
